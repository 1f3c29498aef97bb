/* The tests of MIG, each for a node of its own. */
#ifndef SOFTGPU_NVML_MIG_TEST_H
#define SOFTGPU_NVML_MIG_TEST_H

void test_mig_mode(void);         /* "H100,A100-40" */
void test_mig_busy(void);         /* "H100,A100-40" */
void test_mig_instances(void);    /* "H100" */
void test_mig_rules(void);        /* "A100-40,A30,RTX-PRO-6000" */
void test_mig_compute(void);      /* "H100" */
void test_mig_devices(void);      /* "H100" */
void test_mig_users(void);        /* "H100" */
void test_mig_forgets(void);      /* "H100,A100-40" */
void test_mig_faults(void);       /* "2xH100" */
void test_mig_capabilities(void); /* "A100-40,H100" */
void test_mig_permission(void);   /* "H100" */
void test_mig_events(void);       /* "2xH100" */
void test_mig_layouts(void);      /* any */
void test_mig_killed(void);       /* "H100" */
void test_mig_threads(void);      /* "2xH100" */

#endif
