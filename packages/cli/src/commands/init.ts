import { existsSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import {
  resolveConfig,
  settingAt,
  type Config,
  type ConfigOptions,
  type FlagValues,
} from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import type { Database } from '@gateway/store/postgres';
import {
  Flags,
  GatewayCommand,
  valueFlag,
  withDatabase,
  wrongUse,
} from '../app/gateway-command.js';
import { installation } from '../app/installation.js';
import { noteInterruption } from '../app/signals.js';
import type { CheckName } from '../doctor/examine.js';
import { fileContent, isStored, writeConfigFile } from '../init/config-file.js';
import { openDialogue, type Dialogue } from '../init/dialogue.js';
import { askFor, missingFlags, POSTGRES, REDIS } from '../init/questions.js';
import { accountText, serverUrl } from '../output/account-text.js';
import { counted } from '../output/table.js';

export default class Init extends GatewayCommand {
  static override description =
    'Asks for Postgres, Redis and an email address, unless flags or environment variables set them, and checks the connections. Creates the ' +
    'database if it is missing, writes a configuration file with a new encryption key that only this user can read, applies the ' +
    'migrations, and creates the first user; password and API key are shown only once. After a failure, run it again to continue. ' +
    'Without a terminal, asks nothing and names the missing flags.';
  static override examples = [
    'gateway init',
    'gateway init --yes --email ada@example.com',
    'gateway init --db-host db.internal --kv-host redis.internal --email ada@example.com --yes',
  ];
  static override flags = {
    email: valueFlag('<value>', 'Email of the first user.'),
    yes: Flags.boolean({
      summary: 'Use defaults without asking, and create the database if it is missing.',
    }),
  };

  #dialogue: Dialogue | undefined;
  #agreed = false;
  #path = '';
  #isNew = true;

  async run(): Promise<void> {
    const { flags } = await this.parse(Init);
    this.#path = typeof flags['config'] === 'string' ? flags['config'] : './gateway.json';
    this.#isNew = !existsSync(this.#path);
    const resolved = this.resolve(flags);
    if (!this.#isNew) this.#refuseOther(flags);
    if (flags.email !== undefined) await checkEmail(flags.email);
    this.#agreed = flags.yes;
    if (!flags.yes) this.#dialogue = openDialogue();
    if (!this.#dialogue)
      this.#refuseGuess(flags, flags.yes || !this.#isNew ? [] : missingFlags(resolved));

    let given: FlagValues = flags;
    let { email } = flags;
    try {
      given = await this.#settle(POSTGRES, ['database', 'clock'], given);
      given = await this.#settle(REDIS, ['kv'], given);
      const isUsed = await this.#isUsed(given);
      if (!isUsed) email ??= await this.#askEmail();
    } finally {
      this.#dialogue?.close();
    }
    if (!(await this.#passes(['sandbox', 'open files'], given))) this.exit(1);

    const { config } = this.resolve(given);
    if (this.#isNew) await this.#whole(() => this.#write(given));
    await this.#migrate(config);
    if (email !== undefined) await this.#whole(() => this.#bootstrap(config, email));
    this.#next(config, flags);
  }

  /** A new file need not exist. */
  protected override configOptions(flags: FlagValues): ConfigOptions {
    const options = super.configOptions(flags);
    return existsSync(this.#path) ? options : { ...options, file: {} };
  }

  /** Another gateway may use an existing file. */
  #refuseOther(flags: FlagValues): void {
    const { config } = this.resolve(flags);
    const { config: stored, origins } = this.resolve({ config: flags['config'] });
    const other = [...origins.keys()]
      .filter(isStored)
      .find((key) => !isDeepStrictEqual(settingAt(config, key), settingAt(stored, key)));
    const fix = 'correct the file, or name another with --config';
    if (other) throw wrongUse(`${this.#path} exists and has another ${other}`, fix);
    if (config.encryption_key === undefined)
      throw wrongUse(`${this.#path} exists and has no encryption_key`, fix);
    this.logToStderr(`continues with ${this.#path}`);
  }

  #refuseGuess({ email, yes }: FlagValues, missing: readonly string[]): void {
    const all = [...missing, ...(email === undefined ? ['--email'] : [])];
    if (all.length === 0) return;
    throw wrongUse(
      `no questions are asked ${yes ? 'with --yes' : 'without a terminal'}, and ${all.join(', ')} ${all.length === 1 ? 'is' : 'are'} not given`,
      `set ${all.length === 1 ? 'it' : 'them'}${yes ? '' : ', or run the command in a terminal; --yes uses the defaults of the settings'}`,
    );
  }

  /** Asks, where it can, until the checks pass. Returns all flags, with the answers. */
  async #settle(
    keys: readonly string[],
    checks: readonly CheckName[],
    flags: FlagValues,
  ): Promise<FlagValues> {
    const dialogue = this.#isNew ? this.#dialogue : undefined;
    let given = flags;
    for (let again = false; ; again = true) {
      try {
        if (dialogue) {
          const resolved = this.resolve(given);
          const answers = await askFor(keys, resolved, { dialogue, again });
          const answered = { ...given, ...answers };
          this.resolve(answered);
          given = answered;
        }
        if (checks.includes('database')) await this.#createMissing(this.resolve(given).config);
        if (await this.#passes(checks, given)) return given;
      } catch (error) {
        if (!dialogue || !isGatewayError(error)) throw error;
        await this.#tell(error);
      }
      if (!dialogue) this.exit(1);
    }
  }

  /** A check reports any other problem. */
  async #createMissing(config: Config): Promise<void> {
    const { createDatabase } = await import('@gateway/store/postgres');
    try {
      await withDatabase(config, () => Promise.resolve(), { migrated: false });
    } catch (error) {
      if (!isGatewayError(error, 'database_missing')) return;
      const { database } = config.database;
      const question = `There is no database ${database}. Create it?`;
      if (!this.#agreed && !(await this.#dialogue?.confirm(question))) throw error;
      await createDatabase(config.database).catch((cause: Error) => {
        this.logToStderr(`it cannot be created: ${cause.message}`);
        throw error;
      });
      this.logToStderr(`created the database ${database}`);
    }
  }

  /** Returns whether none failed. */
  async #passes(only: readonly CheckName[], flags: FlagValues): Promise<boolean> {
    const [{ checkConfig }, { examine }, { findingLines }] = await Promise.all([
      import('../config/check.js'),
      import('../doctor/examine.js'),
      import('../doctor/finding.js'),
    ]);
    const discovery = installation();
    const checked = checkConfig(this.configOptions(flags), discovery);
    const given = { checked, resolved: this.resolve(flags), discovery, smtpTo: undefined };
    let passed = true;
    for await (const finding of examine(given, { only })) {
      this.logToStderr(findingLines(finding));
      if (finding.state === 'failed') passed = false;
    }
    return passed;
  }

  /** The database has users or projects. Throws for those of another gateway. */
  async #isUsed(given: FlagValues): Promise<boolean> {
    const [{ sealer }, { openOneSecret }, { isUsed }] = await Promise.all([
      import('@gateway/core/crypto'),
      import('@gateway/store/config'),
      import('@gateway/store/people'),
    ]);
    const { config } = this.resolve(given);
    const { encryption_key: key, database } = config;
    const opensSecret = async ({ pool }: Database, by: string) => {
      try {
        return (await openOneSecret(pool, sealer(by))) || undefined;
      } catch (error) {
        if (isGatewayError(error, 'not_unsealable')) return false;
        throw error;
      }
    };
    const [found, opens] = await withDatabase(
      config,
      async (it) => {
        const isFound = await isUsed(it);
        return [isFound, isFound && key ? await opensSecret(it, key) : undefined] as const;
      },
      { migrated: false },
    );
    if (!found) return false;
    if (key === undefined)
      throw wrongUse(
        `another gateway uses the database ${database.database}, and its encryption key is not here`,
        `copy its configuration file to ${this.#path}, or name another database with --db-database`,
      );
    if (opens === false)
      throw wrongUse(
        `another gateway uses the database ${database.database}: the encryption key here decrypts none of its secrets`,
        `name another database with --db-database, or set encryption_key in ${this.#path} to the key of that gateway`,
      );
    return true;
  }

  async #askEmail(): Promise<string | undefined> {
    while (this.#dialogue) {
      const email = await this.#dialogue.ask('Email of the first user: ');
      try {
        await checkEmail(email);
        return email;
      } catch (error) {
        await this.#tell(error);
      }
    }
    return undefined;
  }

  #write(flags: FlagValues): void {
    const content = fileContent(this.resolve(flags));
    resolveConfig({ ...this.configOptions({}), file: content });
    writeConfigFile(this.#path, content);
    this.logToStderr(
      `wrote ${this.#path}, which only you can read; back up its encryption key separately from the database`,
    );
  }

  async #migrate(config: Config): Promise<void> {
    const { migrateUp } = await import('@gateway/store/postgres');
    const applied = await withDatabase(
      config,
      (database) => migrateUp(database, { onWait: (why) => this.logToStderr(`waiting: ${why}`) }),
      { migrated: false },
    );
    this.logToStderr(`applied ${counted(applied.length, 'migration')}`);
  }

  async #bootstrap(config: Config, email: string): Promise<void> {
    const { bootstrapUser } = await import('@gateway/store/people');
    try {
      const account = await withDatabase(config, ({ knex }) =>
        bootstrapUser(knex, { email, firstName: 'admin', lastName: 'admin' }),
      );
      this.log(`${accountText(account)}\n`);
    } catch (error) {
      if (!isGatewayError(error, 'email_in_use')) throw error;
      this.logToStderr(
        `the user ${email} exists; if its password is lost, \`gateway bootstrap\` creates another user`,
      );
    }
  }

  #next(config: Config, { config: file }: FlagValues): void {
    const at = typeof file === 'string' ? ` --config ${file}` : '';
    const url = `${serverUrl(config)}/`;
    this.log(`Next, here or on other machines with the same ${this.#path}:

  gateway server${at}
  gateway agent${at}
  curl ${url}healthz?ready

${config.dashboard.enabled ? `Then sign in at ${url}, which leads to a first message.` : `The API is at ${url}api/v1.`}`);
  }

  /** Ctrl-C takes effect only after the work is complete. */
  async #whole(work: () => void | Promise<void>): Promise<void> {
    const interruption = noteInterruption();
    try {
      await work();
    } finally {
      interruption.done();
    }
    if (interruption.status !== 0) this.exit(interruption.status);
  }

  async #tell(error: unknown): Promise<void> {
    const { failedBy, findingLines } = await import('../doctor/finding.js');
    this.logToStderr(findingLines({ check: 'answers', ...failedBy(error) }));
  }
}

async function checkEmail(email: string): Promise<void> {
  const { isEmail } = await import('@gateway/store/people');
  if (isEmail(email)) return;
  throw wrongUse(
    `${JSON.stringify(email)} is not an email address`,
    'use an address such as ops@example.com',
  );
}
