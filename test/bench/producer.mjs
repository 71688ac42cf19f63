// @ts-check
// Writes numbered messages of about 1 KB to a topic: node producer.mjs BROKERS TOPIC COUNT RATE
// FROM. Rate 0 is as fast as possible; otherwise each message is scheduled individually and
// timestamped.
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { setTimeout as sleep } from 'node:timers/promises';

const [brokers = '', topic = '', ...numbers] = process.argv.slice(2);
const [count = 0, rate = 0, from = 0] = numbers.map(Number);
const padding = 'x'.repeat(820);

const kafka = new Kafka({
  clientId: 'bench-producer',
  brokers: [brokers],
  logLevel: logLevel.ERROR,
});
const producer = kafka.producer({
  createPartitioner: Partitioners.DefaultPartitioner,
  allowAutoTopicCreation: false,
});
await producer.connect();

let made = 0;
const message = () => {
  const id = from + made++;
  const stamp = (performance.timeOrigin + performance.now()).toFixed(3);
  const data = {
    id,
    stamp: Number(stamp),
    customer: { name: 'Jürgen', vip: id % 7 === 0 },
    total: 10_000 + (id % 977),
    note: padding,
  };
  return { value: `{"event_type":"order.created","data":${JSON.stringify(data)}}` };
};

if (rate === 0) {
  while (made < count) {
    await producer.send({
      topic,
      acks: 1,
      messages: Array.from({ length: Math.min(500, count - made) }, message),
    });
  }
} else {
  const beganMs = performance.now();
  /** @type {Set<Promise<unknown>>} */
  const sending = new Set();
  while (made < count) {
    const due =
      Math.min(count, Math.floor(((performance.now() - beganMs) / 1000) * rate) + 1) - made;
    if (due > 0) {
      const sent = producer
        .send({ topic, acks: 1, messages: Array.from({ length: due }, message) })
        .finally(() => sending.delete(sent));
      sending.add(sent);
    }
    await sleep(rate > 200 ? 5 : 1000 / rate / 4);
  }
  await Promise.all(sending);
}
await producer.disconnect();
