import { once } from 'node:events';
import { connect } from 'node:net';
import { networkReason } from '@gateway/core/errors';
import type { Config } from '@gateway/core/config';
import { failed, failedBy, ok, skipped, warning, type Finding } from './finding.js';

const FILES_MIN = 4096;

/** Starts a sandbox and runs a function. */
export async function checkSandbox(config: Config): Promise<Finding> {
  const { readSandboxFacts } = await import('@gateway/agent/inspect');
  const { startMs, memoryLimited, diesWithParent } = await readSandboxFacts(config);
  const sentence = `a function answered after ${Math.round(startMs)} ms`;
  if (memoryLimited && diesWithParent) return ok('sandbox', `${sentence}; its memory is limited, and it ends with its parent`);
  const lacks = [
    ...(memoryLimited ? [] : ['prlimit, which limits memory beside the heap']),
    ...(diesWithParent ? [] : ['setpriv, which ends it with its parent']),
  ];
  return warning(
    'sandbox',
    `${sentence}; this machine lacks ${lacks.join(', and ')}`,
    'install util-linux: transform functions are then confined by the kernel too',
  );
}

/** How many files a process may have open. Node raises its limit to the most that it may have by itself. */
export function checkOpenFiles(): Finding {
  const limit = openFiles();
  if (limit === undefined) return skipped('open files', 'this system does not tell the limit');
  if (limit >= FILES_MIN) return ok('open files', limit === Infinity ? 'unlimited' : `${limit}`);
  return warning(
    'open files',
    `${limit}: each connection takes one`,
    `raise the hard limit to ${FILES_MIN} or more: \`ulimit -Hn\`, LimitNOFILE of systemd`,
  );
}

function openFiles(): number | undefined {
  // Without it names of peers would be looked up.
  (process.report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const soft = userLimits?.open_files?.soft;
  return soft === 'unlimited' ? Infinity : soft === undefined ? undefined : Number(soft);
}

/** Connects to the SMTP server and logs in; with an address it sends a mail there. */
export async function checkSmtp(config: Config, sendTo: string | undefined): Promise<Finding> {
  const { smtp } = config;
  if (smtp.url === undefined && smtp.provider === undefined && smtp.from === undefined && sendTo === undefined)
    return skipped('smtp', 'smtp.url is not set, no notification is sent');
  const { createMailer } = await import('@gateway/agent/notifications');
  try {
    const mailer = createMailer(config);
    if (sendTo === undefined) {
      await mailer.verify();
      return ok('smtp', `${mailer.server} answers${smtp.username ? ` and lets ${smtp.username} in` : ''}; --smtp-to sends a test mail`);
    }
    const { refused } = await mailer.send({
      to: [sendTo],
      subject: 'Test mail of the gateway',
      text: 'This mail was sent by `gateway utils doctor --smtp-to`. Notifications of the gateway come the same way.\n',
    });
    if (refused.length > 0) return failed('smtp', `${mailer.server} refused ${refused.join(', ')}`, 'check the address');
    return ok('smtp', `${mailer.server} took a test mail to ${sendTo}`);
  } catch (error) {
    return failedBy('smtp', error);
  }
}

/** Connects to the proxy of deliveries. Its URL may hold a password, which is not told. */
export async function checkProxy({ delivery: { proxy } }: Config, signal: AbortSignal): Promise<Finding> {
  if (proxy === undefined) return skipped('proxy', 'delivery.proxy is not set');
  const { hostname, port, protocol } = new URL(proxy);
  const place = { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || (protocol === 'https:' ? 443 : 80)) };
  const socket = connect({ ...place, signal });
  try {
    await once(socket, 'connect');
    return ok('proxy', `${place.host}:${place.port} accepts connections`);
  } catch (error) {
    const reason = networkReason(error) ?? (error as Error).message;
    return failed(
      'proxy',
      `${place.host}:${place.port} cannot be reached: ${reason}`,
      'check that it runs, and correct delivery.proxy (GATEWAY_PROXY)',
    );
  } finally {
    socket.destroy();
  }
}
