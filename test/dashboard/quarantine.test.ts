import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { rejectCodes } from '#ingest/validate/reject-codes';
import { bytesOf, hexDump, textOf } from '#dashboard/pages/preview/bytes';
import { REASONS } from '#dashboard/pages/quarantine/reasons';
import { until } from '../support/until.js';
import { inspect, picture, press } from './browser.js';
import { dashboardScene, quarantined, THREW, type Scene } from './scene.js';

const quarantine = suite('dashboard/quarantine');

const HOSTILE = '<img src=x onerror="window.hacked=1">';

let scene: Scene;
quarantine.before(async () => {
  scene = await dashboardScene();
});
quarantine.after(() => scene.close());

quarantine(
  'a person reads from the overview why a message was quarantined, corrects it, and it is delivered',
  async () => {
    await quarantined(scene, 'orders', ['{"id":"A-1","total":12345678901234567890}']);
    const before = scene.shop.requests.length;
    const { page, close } = await scene.open('/overview');
    await page
      .getByRole('region', { name: 'Health' })
      .getByRole('link', { name: 'Quarantine' })
      .click();
    await page.getByRole('link', { name: 'Function threw' }).click();
    await page.getByRole('heading', { name: 'Function threw' }).waitFor();
    await page.getByText(THREW).waitFor();
    await page.getByText(/Fix the function of the source/).waitFor();
    await page.getByLabel('Message', { exact: true }).getByText('"id":"A-1"').waitFor();
    await inspect(page, 'quarantine-message');
    await page.getByRole('button', { name: 'Edit and replay' }).click();
    const outcome = page.getByRole('region', { name: 'Result' });
    await outcome.getByText('would be quarantined').waitFor();
    await outcome.getByText(/toLowerCase/).waitFor();
    await page.getByLabel('Message body').fill('{"id":"A-1","status":"PAID","total":1}');
    await outcome.getByText('would be accepted').waitFor();
    await outcome.getByText('The event would go to shop.').waitFor();
    await outcome.getByText('"event_type": "order.paid"').waitFor();
    await inspect(page, 'quarantine-edit');
    await page.getByRole('button', { name: 'Save and replay' }).click();
    await page.getByText('Message replayed as an event.').waitFor();
    const requests = await scene.shop.received(before + 1);
    assert.match(requests.at(-1)!.body.toString(), '"status":"PAID"');
    await page.getByRole('link', { name: 'View event' }).click();
    await page.getByRole('heading', { name: 'order.paid' }).waitFor();
    await close();
  },
);

quarantine(
  'bytes are shown as text, JSON and hex, whatever they hold, and those that came are kept beside an edit',
  async () => {
    const messages = [
      `{"note":${JSON.stringify(HOSTILE)},"price":1.10}`,
      Buffer.from([0xff, 0x00, 0x41]),
    ];
    const [text, binary] = (await quarantined(scene, 'binary', messages)).ids;
    const { page, close } = await scene.open(`/quarantine/${text}?bytes=json`);
    await page.getByLabel('JSON', { exact: true }).getByText('1.10').waitFor();
    await page.getByRole('button', { name: 'Text', exact: true }).click();
    await page.getByLabel('Message', { exact: true }).getByText('onerror').waitFor();
    assert.is(await page.locator('main img').count(), 0);
    assert.is(await page.evaluate('window.hacked'), undefined);
    await scene.client.quarantine.update(text!, { raw: '{"edited":true}' });
    await page.reload();
    await page.getByLabel('Message', { exact: true }).getByText('edited').waitFor();
    await page.getByLabel('Show the original').check();
    await page.getByLabel('Message', { exact: true }).getByText('onerror').waitFor();
    await page.goto(`${scene.api.url}/projects/${scene.projectId}/quarantine/${binary}?bytes=hex`);
    await page.getByLabel('Bytes', { exact: true }).getByText('000000  ff 00 41').waitFor();
    await close();
  },
);

quarantine(
  'what a filter matches is replayed after a count of what would be accepted, and the rest is discarded',
  async () => {
    const good = '{"id":"B","status":"PAID"}';
    await quarantined(scene, 'returns', [good, good, '{"id":"C"}']);
    const { page, close } = await scene.open('/quarantine');
    await page.getByLabel('Source').selectOption('returns');
    await page.getByLabel('Reason').selectOption('Function threw');
    const rows = page.getByRole('row', { name: /Function threw/ });
    await until('three rows', async () => (await rows.count()) === 3);
    assert.match(page.url(), /code=transform_threw/);
    await picture(page, 'quarantine');
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page
      .getByText(
        /^2 quarantined messages, “Function threw”, of this source, any time, can be replayed now\.$/,
      )
      .waitFor();
    await page.getByText('1 more would be rejected again and stay in quarantine.').waitFor();
    await inspect(page, 'quarantine-replay');
    await page.getByRole('button', { name: 'Replay 2' }).click();
    await page.getByText('Replayed 2.').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await until('one row', async () => (await rows.count()) === 1);
    await page.getByRole('button', { name: 'Discard…' }).click();
    await page.getByRole('button', { name: 'Discard 1' }).click();
    await page.getByText('Discarded 1.').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByText('No quarantined messages match these filters').waitFor();
    await page.getByLabel('Status').selectOption('discarded');
    await until('the discarded one', async () => (await rows.count()) === 1);
    await close();
  },
);

quarantine('with the keyboard alone a message is found and replayed', async () => {
  await quarantined(scene, 'keys', ['{"id":"K","status":"PAID"}']);
  const { page, close } = await scene.open('/overview', { theme: 'dark' });
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await press(page, 'g', 'q');
  await page.getByRole('heading', { name: 'Quarantine' }).waitFor();
  await page
    .getByRole('row', { name: /Function threw/ })
    .first()
    .waitFor();
  await inspect(page);
  await press(page, 'j', 'r');
  await page.getByText('Message replayed as an event.').waitFor();
  await close();
});

quarantine('a message that somebody edited meanwhile is not overwritten', async () => {
  const { ids } = await quarantined(scene, 'conflict', ['{"id":"D"}']);
  const [id] = ids;
  const { page, close } = await scene.open(`/quarantine/${id}?bytes=edit`);
  const field = page.getByLabel('Message body');
  await field.fill('{"id":"D","status":"MINE"}');
  await page.getByText('would be accepted').waitFor();
  await scene.client.quarantine.update(id!, { raw: '{"id":"D","status":"THEIRS"}' });
  await page.getByRole('button', { name: 'Save and replay' }).click();
  await page
    .getByRole('alert')
    .getByText(/The object has changed/)
    .waitFor();
  await page.getByRole('button', { name: 'Reload message' }).click();
  await until('what it is now', async () => (await field.inputValue()).includes('THEIRS'));
  await close();
});

quarantine('each reason of an agent has a label and what to do', () => {
  assert.equal(Object.keys(REASONS).sort(), Object.keys(rejectCodes).sort());
  for (const { fix } of Object.values(REASONS)) assert.match(fix, /^[A-Z].*\.$/);
});

quarantine(
  'bytes that are not UTF-8 are decoded with replacements, and written in lines of sixteen',
  () => {
    const raw = {
      raw: Buffer.from([0x7b, 0xff, 0x7d]).toString('base64'),
      raw_encoding: 'base64' as const,
    };
    assert.is(textOf(raw), '{\ufffd}');
    assert.equal([...bytesOf(raw)], [0x7b, 0xff, 0x7d]);
    assert.equal([...bytesOf({ raw: 'é', raw_encoding: 'utf8' })], [0xc3, 0xa9]);
    const lines = hexDump(Uint8Array.from({ length: 18 }, (_, n) => 0x40 + n)).split('\n');
    assert.is(
      lines[0],
      '000000  40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f  @ABCDEFGHIJKLMNO',
    );
    assert.match(lines[1]!, /^000010 {2}50 51 +PQ$/);
  },
);

quarantine.run();
