import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseTopic } from '#dev/flags';

const flags = suite('dev/flags');

flags('a topic has a broker or several', () => {
  assert.equal(parseTopic('localhost:9092/orders'), {
    brokers: ['localhost:9092'],
    name: 'orders',
  });
  assert.equal(parseTopic('a.example:9092,b.example:9093/shop.orders_v1-x'), {
    brokers: ['a.example:9092', 'b.example:9093'],
    name: 'shop.orders_v1-x',
  });
});

flags('anything else is not a topic, and the error shows the right form', () => {
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

flags.run();
