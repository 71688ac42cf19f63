import { isIP } from 'node:net';
import { hasIpv6, LookupError } from './names.js';

/** Fixes by error code. A shortage of a process or machine prevents connections. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE:
    'this process has as many files and sockets open as it may (EMFILE). Raise its limit: LimitNOFILE of systemd, `ulimit -Hn`, or --ulimit nofile of the container',
  ENFILE:
    'this machine has as many files open as it may (ENFILE). Raise fs.file-max with sysctl, or move processes to other machines',
  EADDRNOTAVAIL:
    'no local port is free (EADDRNOTAVAIL). Widen net.ipv4.ip_local_port_range with sysctl, or run agents on further machines',
  ENOBUFS: 'the kernel has no memory for a socket (ENOBUFS). Give this machine more memory',
  ENOMEM: 'the kernel has no memory for a socket (ENOMEM). Give this machine more memory',
};
const NO_RESOLVER =
  'no name server answers. Check /etc/resolv.conf of this machine, and the name servers in it';

/** The end of a sentence, with the fix. Undefined for an error that the other side caused. */
export function shortageOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '', address = '', cause } = error as NodeJS.ErrnoException & { address?: string };
  if (error instanceof LookupError) return error.isResolverAway ? NO_RESOLVER : undefined;
  // Without IPv6, an IPv6 address cannot be reached however many ports are free.
  if (code === 'EADDRNOTAVAIL' && isIP(address) === 6 && !hasIpv6()) return undefined;
  return SHORTAGES[code] ?? shortageOf(cause);
}
