import type { UsageRecord } from '@gateway/client';
import { GatewayCommand, integerOf, jsonFlag, valueFlag } from '../../app/gateway-command.js';
import { escapeLine } from '../../output/escape-terminal.js';

export default class UtilsUsage extends GatewayCommand {
  static override description =
    'One line per UTC day and organisation: accepted events, successful event deliveries, bytes of event data, and when the ' +
    'record was posted to billing.url. Running processes add their counts every ten seconds.';
  static override examples = [
    'gateway utils usage',
    'gateway utils usage --days 7 --json',
    'gateway utils usage --organisation-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c',
  ];
  static override flags = {
    ...jsonFlag,
    days: valueFlag('<integer>', 'Days to show, including today. [default: 30]'),
    'organisation-id': valueFlag('<id>', 'Show only this organisation.'),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsUsage);
    const days = integerOf('--days', flags.days, { max: 99_999, otherwise: 30 });
    const organisationId = flags['organisation-id']?.toLowerCase();
    const records = await this.api(flags, async ({ instance }) => {
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
    this.logTable(records, flags, [
      ['DAY', ({ day }) => day],
      ['ORGANISATION', ({ organisation }) => escapeLine(organisation)],
      ['EVENTS', ({ events }) => String(events)],
      ['DELIVERIES', ({ deliveries }) => String(deliveries)],
      ['BYTES', ({ bytes }) => String(bytes)],
      ['POSTED', ({ posted_at: posted }) => posted ?? '-'],
    ]);
    if (records.length === 0) this.logToStderr(`There is no usage for the last ${days} days.`);
  }
}
