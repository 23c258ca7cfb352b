// tasks_bullmq.mjs - a producer, or a worker, for BullMQ.
//
// usage: node tasks_bullmq.mjs push|work PORT TASKS BATCH BYTES
//
// Runs in a folder where BullMQ is installed. A producer adds BATCH tasks a call, two calls under way; a worker has
// 2 x BATCH tasks at once. Prints the seconds from the first call to the last task that is done.
import { Queue, Worker } from "bullmq";
import IORedis from "ioredis";

const [what, port, ...numbers] = process.argv.slice(2);
const [tasks, batch, bytes] = numbers.map(Number);
const connection = () => new IORedis({ port: Number(port), maxRetriesPerRequest: null });
const seconds = () => Number(process.hrtime.bigint()) / 1e9;
const options = { removeOnComplete: true, removeOnFail: true };

async function push(queue) {
  const payload = "x".repeat(bytes);
  let begun = 0;
  const produce = async () => {
    while (begun < tasks) {
      const count = Math.min(batch, tasks - begun);
      begun += count;
      await queue.addBulk(Array.from({ length: count }, () => ({ name: "task", data: payload, opts: options })));
    }
  };
  const begin = seconds();
  await Promise.all([produce(), produce()]);
  return seconds() - begin;
}

async function work() {
  const how = { connection: connection(), concurrency: 2 * batch, autorun: false };
  const worker = new Worker("jobs", async () => {}, how);
  await worker.waitUntilReady();
  let done = 0;
  const begin = seconds();
  await new Promise((resolve) => {
    worker.on("completed", () => ++done === tasks && resolve());
    worker.run();
  });
  const taken = seconds() - begin;
  await worker.close(true);
  return taken;
}

const queue = new Queue("jobs", { connection: connection() });
await queue.waitUntilReady();
console.log((what === "push" ? await push(queue) : await work()).toFixed(6));
process.exit(0);
