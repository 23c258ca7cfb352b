/* test_alarm.c - deadlines that move: the clock is set, and the timer underneath is fired by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdbool.h>

#include "base/alarm.h"
#include "base/clock.h"

#define NOW 1000000

struct fixture {
	struct loop *loop;
	struct alarm alarm;
	int rung;
};

static void on_alarm(void *arg)
{
	struct fixture *f = arg;

	f->rung++;
}

static void begin(struct fixture *f)
{
	*f = (struct fixture){0};
	clock_set(NOW);
	assert_int_equal(loop_new(&f->loop), 0);
	alarm_init(&f->alarm, f->loop, on_alarm, f);
}

static void end(struct fixture *f)
{
	alarm_fini(&f->alarm);
	loop_free(f->loop);
	clock_set(-1);
}

static void turn(struct fixture *f)
{
	event_base_loop(loop_base(f->loop), EVLOOP_NONBLOCK);
}

/* The timer underneath fires, at whatever time it is. */
static void fire(struct fixture *f)
{
	event_active(&f->alarm.timer, EV_TIMEOUT, 0);
	turn(f);
}

static bool is_timer_set(struct fixture *f)
{
	return event_pending(&f->alarm.timer, EV_TIMEOUT, NULL);
}

static void test_an_alarm_that_is_due_rings_once_in_the_next_turn(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	alarm_set(&f.alarm, NOW);
	assert_int_equal(f.rung, 0);
	turn(&f);
	assert_int_equal(f.rung, 1);
	turn(&f);
	assert_int_equal(f.rung, 1);
	end(&f);
}

static void test_a_timer_that_fires_early_is_set_anew(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	alarm_set(&f.alarm, NOW + 60000);
	fire(&f);
	assert_int_equal(f.rung, 0);
	assert_true(is_timer_set(&f));
	clock_set(NOW + 59999);
	fire(&f);
	assert_int_equal(f.rung, 0);
	clock_set(NOW + 60000);
	fire(&f);
	assert_int_equal(f.rung, 1);
	assert_false(is_timer_set(&f));
	end(&f);
}

static void test_moving_it_later_leaves_the_timer_alone(void **state)
{
	struct fixture f;
	struct timeval before, after;

	(void)state;
	begin(&f);
	alarm_set(&f.alarm, NOW + 60000);
	assert_true(event_pending(&f.alarm.timer, EV_TIMEOUT, &before));
	alarm_set(&f.alarm, NOW + 90000);
	assert_true(event_pending(&f.alarm.timer, EV_TIMEOUT, &after));
	assert_true(before.tv_sec == after.tv_sec && before.tv_usec == after.tv_usec);
	clock_set(NOW + 60000);
	fire(&f);
	assert_int_equal(f.rung, 0);
	clock_set(NOW + 90000);
	fire(&f);
	assert_int_equal(f.rung, 1);
	end(&f);
}

static void test_moving_it_earlier_moves_the_timer(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	alarm_set(&f.alarm, NOW + 60000);
	alarm_set(&f.alarm, NOW);
	turn(&f);
	assert_int_equal(f.rung, 1);
	clock_set(NOW + 60000);
	fire(&f);
	assert_int_equal(f.rung, 1);
	end(&f);
}

static void test_an_alarm_that_is_off_does_not_ring(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	alarm_set(&f.alarm, NOW);
	alarm_off(&f.alarm);
	turn(&f);
	fire(&f);
	assert_int_equal(f.rung, 0);
	alarm_set(&f.alarm, NOW);
	turn(&f);
	assert_int_equal(f.rung, 1);
	end(&f);
}

static void test_nothing_is_left_on_the_loop_after_the_end(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	alarm_set(&f.alarm, NOW + 60000);
	assert_true(is_timer_set(&f));
	alarm_fini(&f.alarm);
	assert_false(is_timer_set(&f));
	end(&f);
}

static void set_again(void *arg)
{
	struct fixture *f = arg;

	if (++f->rung < 3)
		alarm_set(&f->alarm, clock_ms());
}

static void test_an_alarm_may_be_set_again_while_it_rings(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.alarm.cb = set_again;
	alarm_set(&f.alarm, NOW - 5);
	for (int i = 0; i < 10; i++)
		turn(&f);
	assert_int_equal(f.rung, 3);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_alarm_that_is_due_rings_once_in_the_next_turn),
	    cmocka_unit_test(test_a_timer_that_fires_early_is_set_anew),
	    cmocka_unit_test(test_moving_it_later_leaves_the_timer_alone),
	    cmocka_unit_test(test_moving_it_earlier_moves_the_timer),
	    cmocka_unit_test(test_an_alarm_that_is_off_does_not_ring),
	    cmocka_unit_test(test_nothing_is_left_on_the_loop_after_the_end),
	    cmocka_unit_test(test_an_alarm_may_be_set_again_while_it_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
