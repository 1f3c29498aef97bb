/* Calls of the driver whose names stay in the thread's place, in case they do not return. */
#ifndef PLAY_CALL_H
#define PLAY_CALL_H

#include "driver.h"
#include "place.h"

/* field and symbol are a row of PLAY_DRIVER_FUNCTIONS; arguments stand in parentheses. */
#define PLAY_CALL(place, driver, field, symbol, arguments)                                         \
    (play_place_call(place, #symbol), (driver)->field arguments)

/* The same; false: err says what the driver said. */
#define PLAY_TRY(place, driver, field, symbol, arguments, err)                                     \
    play_driver_ok(driver, PLAY_CALL(place, driver, field, symbol, arguments), #symbol, err)

#endif /* PLAY_CALL_H */
