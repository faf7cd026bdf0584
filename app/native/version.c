/* Which sources this library was built from: app/native/library.py refuses one that is older than they are. */

#include "common.h"

#ifndef LOCKSTEP_SOURCES
#define LOCKSTEP_SOURCES ""
#endif

const char *lk_sources(void) { return LOCKSTEP_SOURCES; }
