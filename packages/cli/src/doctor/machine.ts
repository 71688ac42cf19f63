import { once } from 'node:events';
import { connect } from 'node:net';
import { sealer } from '@gateway/core/crypto';
import { networkReason } from '@gateway/core/errors';
import { importedPlugins, isMissed } from '@gateway/core/plugins';
import { openOneSecret } from '@gateway/store/config';
import { licenceOf } from '../app/installation.js';
import type { CheckedConfig } from '../config/check.js';
import {
  failed,
  ok,
  skipped,
  warning,
  type DoctorCheck,
  type DoctorContext,
  type DoctorResult,
} from './finding.js';

const ELSEWHERE = ['encryption_key', 'license_key', 'license_public_key'];

/**
 * The same problems as `gateway config check`.
 *
 * @param isAll true if no other check can run, so that the problems of other checks are included
 */
export function checkSettings(
  { problems, warnings, given, file }: CheckedConfig,
  isAll: boolean,
): DoctorResult {
  const told = (lines: CheckedConfig['problems']) =>
    lines.filter(({ key }) => isAll || !ELSEWHERE.includes(key)).map(({ sentence }) => sentence);
  const [wrong, doubtful] = [told(problems), told(warnings)];
  const fix = 'correct each setting where it is set; `gateway config check` lists the problems';
  if (wrong.length > 0) return failed(wrong.join('; '), fix);
  if (doubtful.length > 0) return warning(doubtful.join('; '), fix);
  return ok(
    `${given} ${given === 1 ? 'setting' : 'settings'} given, ${file ? `with those of ${file}` : 'no configuration file'}`,
  );
}

/**
 * Tries the key on a stored secret if there is one. Throws `encryption_key_missing`,
 * `encryption_key_invalid`, or `not_unsealable` if the secret was sealed with another key.
 */
export async function checkEncryptionKey({
  config,
  migrated,
}: DoctorContext): Promise<DoctorResult> {
  const seals = sealer(config.encryption_key);
  const database = await migrated.catch(() => undefined);
  if (!database) return ok('32 bytes; not tested with a stored secret, because of the database');
  return (await openOneSecret(database.pool, seals))
    ? ok('32 bytes; decrypts a stored secret')
    : ok('32 bytes; no secret is stored yet');
}

/** Without a problem, reports the licensee and the expiry. */
export function checkLicence({ config }: DoctorContext): DoctorResult {
  const { kind, organisation, expiresAt, problem } = licenceOf(config);
  if (problem) return warning(problem.message, problem.fix);
  return ok(
    kind === 'community'
      ? kind
      : `${organisation}, ${expiresAt ? `until ${expiresAt.toISOString()}` : 'without expiry'}`,
  );
}

/** One check per plugin. Those that would become active are imported, but not started. */
export async function checkPlugins({
  discovery,
  resolved,
  config,
}: DoctorContext): Promise<DoctorCheck[]> {
  const plugins = await importedPlugins({ discovery, resolved, licence: licenceOf(config) });
  return plugins.map((plugin) => {
    const { kind, name, version, state, reason = '', fix = '' } = plugin;
    const sentence = `${kind}, inactive: ${reason}`;
    const missed = config.plugins.strict ? failed : warning;
    const found =
      state === 'active'
        ? ok(`${kind} ${version}, becomes active`)
        : isMissed(plugin, config)
          ? missed(sentence, fix)
          : skipped(sentence);
    return [`plugin ${name}`, () => found];
  });
}

/**
 * Runs a function. Warns if this machine cannot limit the sandbox's memory or end it with its
 * parent.
 */
export async function checkSandbox({ config }: DoctorContext): Promise<DoctorResult> {
  const { readSandboxFacts } = await import('@gateway/ingest/transform/sandboxes');
  const { startMs, memoryLimited, diesWithParent } = await readSandboxFacts(config);
  const sentence = `a function answered after ${Math.round(startMs)} ms`;
  if (memoryLimited && diesWithParent)
    return ok(`${sentence}; its memory is limited, and it ends with its parent`);
  const lacks = [
    ...(memoryLimited ? [] : ['prlimit, which limits memory outside the heap']),
    ...(diesWithParent ? [] : ['setpriv, which ends it with its parent']),
  ];
  return warning(
    `${sentence}; this machine lacks ${lacks.join(', and ')}`,
    'install util-linux, so that the kernel limits transform functions too',
  );
}

const FILES_MIN = 4096;

/** Node raises its soft limit to the hard limit, so the fix is a higher hard limit. */
export function checkOpenFiles(): DoctorResult {
  // Otherwise the report would resolve the host names of network peers, which can be slow.
  (process.report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const limit = userLimits?.open_files?.soft;
  if (limit === undefined) return skipped('the limit is unknown on this system');
  if (limit === 'unlimited' || Number(limit) >= FILES_MIN) return ok(String(limit));
  const fix = `raise the hard limit to ${FILES_MIN} or more: \`ulimit -Hn\`, LimitNOFILE of systemd`;
  return warning(`${limit}: each connection uses one`, fix);
}

/** Logs in. Sends a test mail if an address is given. */
export async function checkSmtp({ config, smtpTo }: DoctorContext): Promise<DoctorResult> {
  const { smtp } = config;
  if (
    smtp.url === undefined &&
    smtp.provider === undefined &&
    smtp.from === undefined &&
    smtpTo === undefined
  )
    return skipped('smtp.url is not set, so no emails are sent');
  const { createMailer } = await import('@gateway/agent/notifications');
  const mailer = createMailer(config);
  if (smtpTo === undefined) {
    await mailer.verify();
    return ok(
      `${mailer.server} answers${smtp.username ? ` and lets ${smtp.username} in` : ''}; --smtp-to sends a test email`,
    );
  }
  const { error } = await mailer.send({
    to: [smtpTo],
    subject: 'Test email from the gateway',
    text: 'This email was sent by `gateway utils doctor --smtp-to`. Notifications from the gateway arrive the same way.\n',
  });
  if (error) throw error;
  return ok(`${mailer.server} accepted a test email to ${smtpTo}`);
}

/** The proxy's URL can contain a password and is not printed. */
export async function checkProxy({ config, signal }: DoctorContext): Promise<DoctorResult> {
  const { proxy } = config.delivery;
  if (proxy === undefined) return skipped('delivery.proxy is not set');
  const { hostname, port, protocol } = new URL(proxy);
  const place = {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port || (protocol === 'https:' ? 443 : 80)),
  };
  const socket = connect({ ...place, signal });
  try {
    await once(socket, 'connect');
    return ok(`${place.host}:${place.port} accepts connections`);
  } catch (error) {
    const reason = networkReason(error) ?? (error as Error).message;
    const fix = 'check that it runs, and correct delivery.proxy (GATEWAY_PROXY)';
    return failed(`${place.host}:${place.port} cannot be reached: ${reason}`, fix);
  } finally {
    socket.destroy();
  }
}

/** Reads the provider's discovery document. */
export async function checkSignIn({ config }: DoctorContext): Promise<DoctorResult> {
  const { issuer } = config.oidc;
  if (issuer === undefined) return skipped('oidc.issuer is not set; people sign in with passwords');
  const { checkProvider } = await import('@gateway/server/oidc');
  try {
    await checkProvider(config);
    return ok(`${issuer} answers`);
  } catch (error) {
    return failed(
      `${issuer} cannot be used: ${(error as Error).message}`,
      'check oidc.issuer, oidc.allowed_networks and delivery.ca_file',
    );
  }
}
