/* public_user.h - the public header as its user sees it, for test_public.c. */
#ifndef GS_TESTS_PUBLIC_USER_H
#define GS_TESTS_PUBLIC_USER_H

/* Value that gnnstream.h gives the status of this name; 1 where it has none. */
int public_status(const char *name);
const char *public_version(void);

#endif /* GS_TESTS_PUBLIC_USER_H */
