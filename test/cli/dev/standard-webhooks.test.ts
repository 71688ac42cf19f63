import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Webhook } from 'standardwebhooks';
import { signatureProblem } from '#cli/dev/standard-webhooks';

const verify = suite('cli/dev/standard-webhooks');

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const body = Buffer.from('{"number":"A-1","ä":1.10}');

/** Headers as the library of the standard makes them. */
function signed({ with: keys = [secret], at = new Date() }: { with?: readonly string[]; at?: Date } = {}): Record<string, string> {
  const id = 'msg_1';
  const signatures = keys.map((key) => new Webhook(key).sign(id, at, body.toString()));
  return { 'webhook-id': id, 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)), 'webhook-signature': signatures.join(' ') };
}

verify('what the library of the standard signs is right', () => {
  assert.is(signatureProblem(signed(), body, secret), undefined);
});

verify('one right signature among several is enough', () => {
  assert.is(signatureProblem(signed({ with: [other, secret] }), body, secret), undefined);
});

verify('another secret, another body, another id or another time is told', () => {
  assert.match(signatureProblem(signed({ with: [other] }), body, secret) ?? '', 'not made with the secret');
  assert.match(signatureProblem(signed(), Buffer.from('{}'), secret) ?? '', 'not made with the secret');
  assert.match(signatureProblem({ ...signed(), 'webhook-id': 'msg_2' }, body, secret) ?? '', 'not made with the secret');
  const tenMinutes = 600_000;
  for (const at of [Date.now() - tenMinutes, Date.now() + tenMinutes]) {
    assert.match(signatureProblem(signed({ at: new Date(at) }), body, secret) ?? '', 'not within 5 minutes');
  }
});

verify('a request without the headers, or with rubbish in them, is told', () => {
  assert.match(signatureProblem({}, body, secret) ?? '', 'lacks');
  assert.match(signatureProblem({ ...signed(), 'webhook-timestamp': 'soon' }, body, secret) ?? '', 'not within');
  for (const rubbish of ['', 'v1', 'v1,', 'v1,%%%', 'v2,' + 'A'.repeat(44)]) {
    assert.match(signatureProblem({ ...signed(), 'webhook-signature': rubbish }, body, secret) ?? '', 'not made with the secret');
  }
});

verify.run();
