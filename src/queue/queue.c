/* queue.c - one queue of tasks in the store: its life. */
#include <errno.h>
#include <stdlib.h>

#include "queue/internal.h"

int queue_new(struct queue **ret, struct loop *loop, struct store *store,
	      const struct queue_config *config, char *error, size_t error_size)
{
	struct queue *queue = calloc(1, sizeof *queue);
	int r = queue ? queue_keys_init(&queue->keys, config->name, config->levels,
					config->level_count, config->are_lists, error, error_size)
		      : -ENOMEM;

	if (r) {
		free(queue);
		return r;
	}
	queue->loop = loop;
	queue->store = store;
	queue->config = *config;
	queue->config.name = queue->keys.name;
	queue->config.levels = queue->levels;
	for (size_t i = 0; i < queue->keys.level_count; i++)
		queue->levels[i] = queue->keys.levels[i].name;
	/* A process that claims only once comes to the bottom now and then as well. */
	if (config->aging > 0)
		queue->turns = arc4random_uniform((uint32_t)config->aging);
	settling_init(queue);
	*ret = queue;
	return 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	settling_fini(queue);
	free(queue);
}

const struct queue_config *queue_config(const struct queue *queue)
{
	return &queue->config;
}

const struct queue_keys *queue_keys(const struct queue *queue)
{
	return &queue->keys;
}

struct store *queue_store(const struct queue *queue)
{
	return queue->store;
}
