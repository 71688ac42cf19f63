import * as Flags from '@oclif/core/flags';
import { GatewayError } from '@gateway/core/errors';
import type { UsageDay } from '@gateway/store/usage';
import { answerTable, type Column } from '../../output/table.js';
import { integerOf } from '../../app/flag-values.js';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';
import { escapeLine } from '../../output/escape-terminal.js';
import { withDatabase } from '../../app/database.js';

const columns: readonly Column<UsageDay>[] = [
  ['DAY', ({ day }) => day],
  ['ORGANISATION', ({ organisation }) => escapeLine(organisation)],
  ['EVENTS', ({ events }) => String(events)],
  ['DELIVERIES', ({ deliveries }) => String(deliveries)],
  ['BYTES', ({ bytes }) => String(bytes)],
  ['POSTED', ({ posted_at: posted }) => posted?.toISOString() ?? '-'],
];

export default class UtilsUsage extends GatewayCommand {
  static override description =
    'One line for each UTC day and organisation: events that were accepted, event deliveries that ended in success, bytes of the data of those events, and ' +
    'when the record was posted to billing.url. What running processes have counted is added every ten seconds.';
  static override examples = [
    '<%= config.bin %> utils usage',
    '<%= config.bin %> utils usage --days 7 --json',
    '<%= config.bin %> utils usage --organisation-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c',
  ];
  static override flags = {
    ...jsonFlag,
    days: Flags.string({ helpValue: '<integer>', summary: 'How many days to show, today included. [default: 30]' }),
    'organisation-id': Flags.string({ helpValue: '<id>', summary: 'Show one organisation alone.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsUsage);
    const days = integerOf('--days', flags.days, { max: 99_999, otherwise: 30 });
    const organisationId = flags['organisation-id']?.toLowerCase() ?? null;
    const { config } = this.resolve(flags);
    const [{ isId }, { listUsage }, { organisationExists }] = await Promise.all([
      import('@gateway/core/events'),
      import('@gateway/store/usage'),
      import('@gateway/store/config'),
    ]);
    const records = await withDatabase(config, async (database) => {
      const { knex, pool } = database;
      if (organisationId !== null && !(isId(organisationId) && (await organisationExists(knex, organisationId))))
        throw new GatewayError('not_found', { thing: 'organisation', id: organisationId });
      return listUsage(pool, { days, organisationId });
    });
    this.log(answerTable(records, columns, flags));
    if (records.length === 0) this.logToStderr(`No usage is on record for the last ${days} days.`);
  }
}
