import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseTopic } from '#cli/dev/topics';

const topics = suite('cli/dev/topics');

topics('a broker and a topic, or several brokers', () => {
  assert.equal(parseTopic('localhost:9092/orders'), { brokers: ['localhost:9092'], name: 'orders' });
  assert.equal(parseTopic('a.example:9092,b.example:9093/shop.orders_v1-x'), {
    brokers: ['a.example:9092', 'b.example:9093'],
    name: 'shop.orders_v1-x',
  });
});

topics('anything else is refused with the form that is right', () => {
  for (const text of [
    '',
    'orders',
    'localhost/orders',
    'localhost:9092',
    'localhost:9092/',
    ':9092/orders',
    'localhost:port/orders',
    'localhost:9092/or ders',
    'a:1,/orders',
  ]) {
    assert.throws(() => parseTopic(text), /must be host:port\/topic/, text);
  }
});

topics.run();
