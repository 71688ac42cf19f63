import type { UsageRecord } from '@gateway/client';
import { command, integerOf, jsonFlag, readFlag, valueFlag } from '../../app/gateway-command.js';

export default command({
  description:
    'One line per UTC day and organisation: accepted events, successful event deliveries, bytes of event data, and when the ' +
    'record was posted to billing.url. Running processes add their counts every ten seconds.',
  examples: [
    'gateway utils usage',
    'gateway utils usage --days 7 --json',
    'gateway utils usage --organisation-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c',
  ],
  flags: {
    ...jsonFlag,
    days: readFlag('<integer>', 'Days to show, including today. [default: 30]', (name, it) =>
      integerOf(name, it, { max: 99_999, otherwise: 30 }),
    ),
    'organisation-id': valueFlag('<id>', 'Show only this organisation.'),
  },
  async run({ flags: { days, ...flags }, api, note, table }) {
    const organisationId = flags['organisation-id']?.toLowerCase();
    const records = await api(async ({ instance }) => {
      const found: UsageRecord[] = [];
      for (let after: string | undefined | null; after !== null;) {
        const page = await instance.listUsage({ days, organisationId, after });
        found.push(...page.content);
        after = page.next;
      }
      return found;
    });
    const byName = (a: UsageRecord, b: UsageRecord) => a.organisation.localeCompare(b.organisation);
    records.sort((a, b) => b.day.localeCompare(a.day) || byName(a, b));
    table(records, [
      ['DAY', 'day'],
      ['ORGANISATION', 'organisation'],
      ['EVENTS', 'events'],
      ['DELIVERIES', 'deliveries'],
      ['BYTES', 'bytes'],
      ['POSTED', 'posted_at'],
    ]);
    if (records.length === 0) note(`There is no usage for the last ${days} days.`);
  },
});
