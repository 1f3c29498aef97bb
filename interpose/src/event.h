/* Which mark of which stream an event of the program stands for. */
#ifndef HEDDLE_EVENT_H
#define HEDDLE_EVENT_H

#include "settle.h"

/* The event was recorded behind this; a settle without a stream forgets the event. */
void heddle_event_set(void *event, const struct heddle_settle *settle);

/* What is proven when the event is complete. */
void heddle_event_get(void *event, struct heddle_settle *settle);

void heddle_event_forget(void *event);
void heddle_event_reset(void);

#endif /* HEDDLE_EVENT_H */
