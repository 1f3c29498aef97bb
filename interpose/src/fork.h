/* A child of a fork is a new client. */
#ifndef HEDDLE_FORK_H
#define HEDDLE_FORK_H

/* From now on the child of every fork forgets its parent's connection, segment and verdict. */
void heddle_fork_watch(void);

#endif /* HEDDLE_FORK_H */
