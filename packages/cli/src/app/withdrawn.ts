import { GatewayError } from '@gateway/core/errors';
import type { SettingsTable } from '@gateway/core/config';

/** Commands of the past, and what replaced them. */
const withdrawnCommands: Readonly<Record<string, string>> = {
  worker: 'use `gateway agent`, the data plane',
  ingest: 'use `gateway agent`, the data plane',
  stream: 'use `gateway agent`, the data plane',
  scheduler: 'use `gateway agent`, the data plane, and `gateway server`, the control plane',
};

/** Throws `withdrawn` when the command line has a command or a flag of the past. */
export function refuseWithdrawn(argv: readonly string[], rows: SettingsTable): void {
  const [command] = argv;
  const instead = command !== undefined && Object.hasOwn(withdrawnCommands, command) ? withdrawnCommands[command] : undefined;
  if (instead) throw new GatewayError('withdrawn', { form: `the command ${command}`, instead });
  for (const { flag, withdrawn } of Object.values(rows)) {
    if (!flag || withdrawn === undefined) continue;
    const i = argv.findIndex((arg) => arg === `--${flag}` || arg.startsWith(`--${flag}=`));
    if (i === -1 || (argv.includes('--') && argv.indexOf('--') < i)) continue;
    const next = argv[i + 1];
    const form = argv[i] === `--${flag}` && next !== undefined && !next.startsWith('-') ? `${argv[i]}=${next}` : argv[i]!;
    throw new GatewayError('withdrawn', { form, instead: withdrawn });
  }
}
