/* notify.h - tells systemd what this process is about (sd_notify(3), Type=notify).
 *
 * Where NOTIFY_SOCKET names none, nothing is told. */
#ifndef FAIRLEAD_NODE_NOTIFY_H
#define FAIRLEAD_NODE_NOTIFY_H

/* Keeps the address and takes it out of the environment: children are not to speak for this process. */
void notify_open(void);

/* Puts it back, for a program that this process is about to become. */
void notify_pass_on(void);

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);

#endif
