import { GatewayError } from '@gateway/core/errors';
import {
  command,
  readInput,
  switchFlag,
  valueFlag,
  withDatabase,
  wrongUse,
} from '../../../app/gateway-command.js';
import { serverUrl } from '../../../output/account-text.js';

/** As in the management API. */
const PASSWORD_MIN = 12;

export default command({
  description:
    'Prints a link to set a new password, which works once and expires after an hour. With --password-stdin, reads the new password ' +
    'from standard input instead. Both end all sessions of the user, and all that was made for an account whose address was unproven, and are recorded in the audit logs of their organisations.',
  examples: [
    'gateway utils users reset-password --email ada@example.com',
    'gateway utils users reset-password --email ada@example.com --password-stdin < password.txt',
  ],
  flags: {
    email: valueFlag('<value>', 'Email of the user.'),
    'password-stdin': switchFlag('Read the new password from standard input.'),
  },
  async run({ flags, config, log, note }) {
    const email = flags.email?.trim();
    if (!email) throw wrongUse('an email is required', 'set it with --email=<address>');
    const settings = config();
    const password = flags['password-stdin'] ? await newPassword() : undefined;
    const [people, { newId }] = await Promise.all([
      import('@gateway/store/people'),
      import('@gateway/core/events'),
    ]);
    const passwordHash = password && (await people.hashPassword(password));
    const done = await withDatabase(settings, ({ knex }) =>
      knex.transaction(async (trx) => {
        const user = await people.findUserByEmail(trx, email);
        if (!user) {
          const fix = 'check the address; `gateway bootstrap` creates a user';
          throw new GatewayError('not_found', { thing: 'user', id: email, fix });
        }
        const done = passwordHash
          ? (await people.resetPassword(trx, user.id, passwordHash))!
          : await people.insertPasswordReset(trx, user.id);
        const method = { after: passwordHash ? 'password' : 'link' };
        const entries = (await people.organisationsOfUser(trx, user.id)).map(({ id }) => ({
          organisation_id: id,
          project_id: null,
          actor_type: 'process' as const,
          actor_id: 'gateway utils users reset-password',
          key_id: null,
          action: 'users.resetPassword',
          resource_id: user.id,
          changes: JSON.stringify({ method }),
          address: null,
          request_id: newId(),
        }));
        if (entries.length > 0) await people.insertAuditEntries(trx, entries);
        return done;
      }),
    );
    if (!('token' in done)) {
      const keys = done.taken ? ` API keys revoked: ${done.taken.api_keys.length}.` : '';
      return note(`The password is changed. Sessions ended: ${done.sessions}.${keys}`);
    }
    log(`${serverUrl(settings)}/#password-reset=${done.token}`);
    note('Anyone with this link can set the password, once, within an hour.');
  },
});

async function newPassword(): Promise<string> {
  const text = (await readInput('--password-stdin', '-')).toString('utf8').replace(/\r?\n$/, '');
  if (text.length >= PASSWORD_MIN) return text;
  throw wrongUse(`the password has fewer than ${PASSWORD_MIN} characters`, 'choose a longer one');
}
