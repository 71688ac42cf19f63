import * as Flags from '@oclif/core/flags';
import { didYouMean, GatewayError } from '@gateway/core/errors';
import { accountText } from '../account-text.js';
import { GatewayCommand } from '../app/gateway-command.js';
import { withDatabase } from '../app/database.js';

export default class Bootstrap extends GatewayCommand {
  static override description =
    'Prints the user with a generated password, the organisation, and a personal API key for the management API. Password and key are shown this once.';
  static override examples = [
    '<%= config.bin %> bootstrap --email ada@example.com --first-name Ada --last-name Lovelace',
    '<%= config.bin %> bootstrap --email ada@example.com --format human',
  ];
  static override flags = {
    email: Flags.string({ helpValue: '<value>', summary: 'Email of the user.' }),
    'first-name': Flags.string({ helpValue: '<value>', summary: 'First name of the user. [default: admin]' }),
    'last-name': Flags.string({ helpValue: '<value>', summary: 'Last name of the user. [default: admin]' }),
    format: Flags.string({ helpValue: 'json|human', summary: 'Output format. [default: json]' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Bootstrap);
    const email = required(flags['email']);
    const format = formatOf(flags['format']);
    const { config } = this.resolve(flags);
    const { bootstrapUser } = await import('@gateway/store/config');
    const account = await withDatabase(config, async (database) => {
      return bootstrapUser(database.knex, {
        email,
        firstName: String(flags['first-name'] ?? 'admin'),
        lastName: String(flags['last-name'] ?? 'admin'),
      });
    });
    this.log(format === 'json' ? JSON.stringify(account, null, 2) : accountText(account, config));
  }
}

const FORMATS = ['json', 'human'] as const;

function formatOf(given: unknown): (typeof FORMATS)[number] {
  const format = FORMATS.find((it) => it === (given ?? 'json'));
  if (format) return format;
  throw new GatewayError('wrong_use', {
    sentence: `--format must be ${FORMATS.join(' or ')}, not ${JSON.stringify(given)}${didYouMean(String(given), FORMATS)}`,
    fix: 'leave it away to print JSON',
  });
}

function required(email: unknown): string {
  if (typeof email === 'string' && email.trim() !== '') return email.trim();
  throw new GatewayError('wrong_use', { sentence: 'an email is required', fix: 'give one with --email=<address>' });
}
