import type { Config } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import { backoffMs } from '@gateway/core/process';
import { claimPasswordResetMail, markPasswordResetMailed } from '@gateway/store/people';
import {
  claimNotifications,
  markSent,
  postponeNotifications,
  type ClaimedNotification,
} from '@gateway/store/config';
import type { AgentContext } from '../config/agent-context.js';
import type { Mail, Mailer } from './mailer.js';
import { notificationText } from './notification-text.js';

interface OutboxOptions extends Pick<AgentContext, 'config' | 'database' | 'log' | 'health'> {
  readonly mailer: Mailer;
}

/** The backoff for a single notification, and for this agent while the SMTP server is down. */
const BACKOFF = { baseMs: 1_000, capMs: 300_000 };

/** Sends notifications at least once. Copies of an email have the same Message-ID. */
export class Outbox {
  #failures = 0;
  #pausedUntilMs = 0;
  #isUp: boolean | undefined;
  #stopped = false;

  constructor(private readonly options: OutboxOptions) {}

  get isRetryDue(): boolean {
    return this.#isUp === false && performance.now() >= this.#pausedUntilMs;
  }

  stop(): void {
    this.#stopped = true;
  }

  async send(): Promise<void> {
    if (performance.now() < this.#pausedUntilMs) return;
    if (this.#isUp !== true && !(await this.#check())) return;
    while (!this.#stopped && (await this.#sendPasswordLink()));
    while (!this.#stopped && (await this.#sendNext()));
  }

  async #check(): Promise<boolean> {
    const { mailer, log, health } = this.options;
    try {
      await mailer.verify();
    } catch (error) {
      this.#reportAway(error as Error);
      return false;
    }
    if (this.#isUp === false)
      log.info({ server: mailer.server }, 'The SMTP server answers again; notifications are sent.');
    this.#isUp = true;
    this.#failures = 0;
    health.report('smtp', 'ok');
    return true;
  }

  #reportAway(error: Error): void {
    const { log, health } = this.options;
    const fix = isGatewayError(error) ? error.fix : undefined;
    if (this.#isUp !== false) log.warn({ fix }, `Notifications wait, because ${error.message}.`);
    this.#isUp = false;
    health.report('smtp', 'degraded', `${error.message}. Notifications wait and are sent later.`);
    this.#pausedUntilMs = performance.now() + backoffMs(++this.#failures, BACKOFF);
  }

  /** Sends a link to a user who forgot the password. Failed ones are due again in a minute. */
  async #sendPasswordLink(): Promise<boolean> {
    const { database, mailer, log } = this.options;
    const due = await claimPasswordResetMail(database.pool);
    if (!due) return false;
    const { id, email, link } = due;
    const subject = '[gateway] Reset your password';
    const text = `Someone requested a password reset for this account.\n\nTo choose a new password, open this link within one hour. It works once:\n\n  ${link}\n\nIf you did not request this, ignore this email. Your password stays the same.\n`;
    try {
      await mailer.send({ to: [email], subject, text });
    } catch (error) {
      if (!isGatewayError(error, 'smtp_refused')) {
        this.#reportAway(error as Error);
        return false;
      }
      log.warn({ password_reset_id: id }, `A link could not be sent, because ${error.message}.`);
      return true;
    }
    await markPasswordResetMailed(database.pool, id);
    log.info({ password_reset_id: id }, 'A password reset link was sent by email.');
    return true;
  }

  async #sendNext(): Promise<boolean> {
    const { config, database, mailer, log } = this.options;
    const notifications = await claimNotifications(
      database.pool,
      config.notifications.quiet_seconds,
    );
    const [first] = notifications;
    if (!first) return false;
    const { id, kind } = first;
    const ids = notifications.map((it) => it.id);
    const fields = {
      notification_id: id,
      kind,
      about: first.subject,
      project_id: first.projectId,
      notifications: ids.length,
    };
    const recipients = recipientsOf(first, config);
    // The fewest attempts determine the backoff, so that a new notification does not wait as long
    // as old ones.
    const attempts = Math.min(...notifications.map((it) => it.attempts));
    const postpone = (reason: string) =>
      postponeNotifications(database.pool, ids, reason, backoffMs(attempts, BACKOFF));
    if (!recipients) {
      if (attempts === 1)
        log.warn(
          fields,
          'A notification has no recipient: the organisation has no admin. It waits for one.',
        );
      await postpone('There is no admin to send it to.');
      return true;
    }
    try {
      // An email with the same first notification but a different number of them is not a copy.
      const mailId = ids.length === 1 ? id : `${id}.${ids.length}`;
      const { refused } = await mailer.send({
        ...recipients,
        ...notificationText(notifications, config),
        id: mailId,
      });
      log.info(fields, 'A notification was sent by email.');
      if (refused.length > 0)
        log.warn(
          { ...fields, addresses: refused },
          'The SMTP server refused some of the addresses of a notification.',
        );
    } catch (error) {
      const { message } = error as Error;
      // A rejected email does not stop the others.
      const alone = isGatewayError(error, 'smtp_refused');
      if (!alone) this.#reportAway(error as Error);
      else if (attempts === 1)
        log.warn(
          { ...fields, fix: error.fix },
          `A notification could not be sent, because ${message}.`,
        );
      await postpone(message);
      return alone;
    }
    await markSent(database.pool, ids);
    return true;
  }
}

/**
 * Returns the recipients of a notification, or undefined if there are none. Admins of one
 * organisation see each other's addresses; admins of several organisations do not.
 */
function recipientsOf(
  { projectId, admins }: ClaimedNotification,
  { smtp }: Config,
): Pick<Mail, 'to' | 'bcc'> | undefined {
  if (projectId === null && smtp.to.length > 0) return { to: smtp.to };
  if (admins.length === 0) return undefined;
  return projectId === null ? { bcc: admins } : { to: admins };
}
