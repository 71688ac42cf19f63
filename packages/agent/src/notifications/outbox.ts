import { isGatewayError } from '@gateway/core/errors';
import { backoffMs, type Health } from '@gateway/core/process';
import { claimPasswordResetMail, markPasswordResetMailed } from '@gateway/store/people';
import { claimNotifications, markSent, postponeNotifications } from '@gateway/store/config';
import type { ProcessContext } from '../config/agent-context.js';
import type { Mailer } from './mailer.js';
import { notificationText } from '../model/notification-text.js';

interface OutboxOptions extends Pick<ProcessContext, 'config' | 'database' | 'log'> {
  readonly health: Pick<Health, 'report'>;
  readonly mailer: Mailer;
}

/** The backoff for a single notification, and for this agent while the SMTP server is down. */
const BACKOFF = { baseMs: 1_000, capMs: 300_000 };
/** The number of recipients of an email. Services refuse emails with more than 50 whole. */
const RECIPIENTS_MAX = 25;

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
      const { error } = await mailer.send({ to: [email], subject, text });
      if (error) throw error;
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
    const { id, kind, admins } = first;
    const ids = notifications.map((it) => it.id);
    const fields = {
      notification_id: id,
      kind,
      about: first.subject,
      project_id: first.projectId,
      notifications: ids.length,
    };
    // The fewest attempts determine the backoff, so that a new notification does not wait as long
    // as old ones.
    const attempts = Math.min(...notifications.map((it) => it.attempts));
    const waitMs = backoffMs(attempts, BACKOFF);
    if (admins.length === 0) {
      if (attempts === 1)
        log.warn(
          fields,
          'A notification has no recipient: the organisation has no admin. It waits for one.',
        );
      const reason = 'There is no admin to send it to.';
      await postponeNotifications(database.pool, ids, { reason, waitMs });
      return true;
    }
    const { left = admins, reached = false } = notifications.at(-1)!.facts.mail ?? {};
    const current = new Set(admins);
    const kept = left.filter((it) => current.has(it));
    const waiting = kept.length > 0 || reached ? kept : admins;
    const [some, rest] = [waiting.slice(0, RECIPIENTS_MAX), waiting.slice(RECIPIENTS_MAX)];
    // An email with the same first notification but a different number of them is not a copy.
    const mailId = ids.length === 1 ? id : `${id}.${ids.length}`;
    let sent;
    try {
      sent = await mailer.send({
        to: some,
        ...notificationText(notifications, config),
        id: mailId,
      });
      if (sent.error && sent.accepted === 0 && !reached) throw sent.error;
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
      await postponeNotifications(database.pool, ids, {
        reason: message,
        waitMs,
        // The next recipients are first, so that these do not stop them.
        ...(alone && rest.length > 0 && { mail: { left: [...rest, ...some], reached } }),
      });
      return alone;
    }
    const { accepted, refused, deferred, error } = sent;
    if (error && accepted + refused.length > 0)
      log.warn(
        { ...fields, addresses: refused, tried_again: deferred, fix: error.fix },
        `Some addresses of a notification were not accepted, because ${error.message}.`,
      );
    const next = [...rest, ...deferred];
    if (next.length > 0) {
      await postponeNotifications(database.pool, ids, {
        reason: error?.message ?? 'It is sent to other recipients first.',
        waitMs: accepted > 0 ? 0 : waitMs,
        mail: { left: next, reached: true },
      });
      return true;
    }
    log.info(fields, 'A notification was sent by email.');
    await markSent(database.pool, ids);
    return true;
  }
}
