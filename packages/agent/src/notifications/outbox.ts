import type { Config } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { backoffMs, type Health } from '@gateway/core/process';
import { claimNotifications, giveUpNotifications, markSent, postponeNotifications, type ClaimedNotification } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import type { Mail, Mailer } from './mailer.js';
import { notificationText } from './notification-text.js';

export interface OutboxOptions {
  readonly config: Config;
  readonly database: Database;
  readonly mailer: Mailer;
  readonly log: Log;
  readonly health: Health;
}

const GIVE_UP_HOURS = 72;
const FORGET_DAYS = 90;
const TIDY_MS = 3_600_000;
/** Waits between tries at one notification, and of this agent while the SMTP server is away. */
const WAIT = { baseMs: 1_000, capMs: 300_000 };
const MARK_TRIES = 6;

/**
 * Sends what waits in the outbox, one e-mail at a time, whichever agent is first. At least once: an agent that is killed after the SMTP server took an
 * e-mail and before that is on record leaves it to be sent again, under the same Message-ID.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  #failures = 0;
  #pausedUntilMs = 0;
  #tidyAtMs = 0;
  /** Whether the SMTP server answered last; undefined before it was asked. */
  #well: boolean | undefined;
  #stopped = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** The SMTP server did not answer, and it is time to ask it again. */
  get dueAgain(): boolean {
    return this.#well === false && performance.now() >= this.#pausedUntilMs;
  }

  /** After this nothing more is taken; what is being sent is sent. */
  stop(): void {
    this.#stopped = true;
  }

  /** Sends what is due. Throws when Postgres does not answer. */
  async send(): Promise<void> {
    await this.#tidy();
    if (performance.now() < this.#pausedUntilMs) return;
    if (this.#well !== true && !(await this.#asks())) return;
    while (!this.#stopped && (await this.#sendNext()));
  }

  /** Asks the SMTP server whether it would take an e-mail. */
  async #asks(): Promise<boolean> {
    const { mailer, log, health } = this.#options;
    try {
      await mailer.verify();
    } catch (error) {
      this.#away(error as Error);
      return false;
    }
    if (this.#well === false) log.info({ server: mailer.server }, 'The SMTP server answers again; notifications are sent.');
    this.#well = true;
    this.#failures = 0;
    health.report('smtp', 'ok');
    return true;
  }

  #away(error: Error): void {
    const { log, health } = this.#options;
    const fix = isGatewayError(error) ? error.fix : undefined;
    if (this.#well !== false) log.warn({ fix }, `Notifications wait, because ${error.message}.`);
    this.#well = false;
    health.report('smtp', 'degraded', `${error.message}. Notifications wait and are sent later.`);
    this.#pausedUntilMs = performance.now() + backoffMs(++this.#failures, WAIT);
  }

  /** Sends one e-mail. False when nothing is due, or the SMTP server is of no use now. */
  async #sendNext(): Promise<boolean> {
    const { config, database, mailer, log } = this.#options;
    const notifications = await claimNotifications(database.pool, config.notifications.quiet_seconds);
    const [first] = notifications;
    if (!first) return false;
    const { id, kind } = first;
    const ids = notifications.map((it) => it.id);
    const fields = { notification_id: id, kind, about: first.subject, project_id: first.projectId, notifications: ids.length };
    const recipients = recipientsOf(first, config);
    // Those that are new set the pace, so that they do not wait for what was tried for hours.
    const attempts = Math.min(...notifications.map((it) => it.attempts));
    const postpone = (reason: string) => postponeNotifications(database.pool, ids, reason, backoffMs(attempts, WAIT));
    if (!recipients) {
      if (attempts === 1) log.warn(fields, 'A notification has nobody to go to: the organisation has no admin. It waits for one.');
      await postpone('There is no admin to send it to.');
      return true;
    }
    try {
      // Others gathered behind the same first one make another e-mail, not a copy.
      const mailId = ids.length === 1 ? id : `${id}.${ids.length}`;
      const { refused } = await mailer.send({ ...recipients, ...notificationText(notifications, config), id: mailId });
      log.info(fields, 'A notification was sent by e-mail.');
      if (refused.length > 0)
        log.warn({ ...fields, addresses: refused }, 'The SMTP server refused some of the addresses of a notification.');
    } catch (error) {
      const { message } = error as Error;
      // What is wrong with this e-mail alone holds up no other.
      const alone = isGatewayError(error, 'smtp_refused');
      if (!alone) this.#away(error as Error);
      else if (attempts === 1) log.warn({ ...fields, fix: error.fix }, `A notification could not be sent, because ${message}.`);
      await postpone(message);
      return alone;
    }
    await this.#mark(ids);
    return true;
  }

  /** The e-mail is out: everything is tried to have that on record before the notification is taken again. */
  async #mark(ids: readonly string[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await markSent(this.#options.database.pool, ids);
        return;
      } catch (error) {
        if (tries === MARK_TRIES || this.#stopped) throw error;
        await new Promise((resolve) => setTimeout(resolve, backoffMs(tries, { capMs: 5_000 })));
      }
    }
  }

  async #tidy(): Promise<void> {
    if (performance.now() < this.#tidyAtMs) return;
    const { database, log } = this.#options;
    const lost = await giveUpNotifications(database.pool, { afterHours: GIVE_UP_HOURS, forgetAfterDays: FORGET_DAYS });
    for (const { id, kind, subject, last_error: error } of lost)
      log.error(
        { notification_id: id, kind, about: subject, last_error: error },
        `A notification could not be sent for ${GIVE_UP_HOURS} hours and is given up.`,
      );
    this.#tidyAtMs = performance.now() + TIDY_MS;
  }
}

/** Admins see each other in their organisation, and nobody of another one. */
function recipientsOf({ projectId, admins }: ClaimedNotification, { smtp }: Config): Pick<Mail, 'to' | 'bcc'> | undefined {
  if (projectId === null && smtp.to.length > 0) return { to: smtp.to };
  if (admins.length === 0) return undefined;
  return projectId === null ? { bcc: admins } : { to: admins };
}
