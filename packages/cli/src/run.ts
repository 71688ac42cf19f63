import type { Config } from '@oclif/core/config';
import { rootHelp, wantsRootHelp } from './root-help.js';

/**
 * Runs the command line. Answers go to standard output, everything else to standard error.
 *
 * @param argv the arguments, without node and script
 * @param root folder of the installation, whose `package.json` names the built-in plugins
 * @returns the exit status: 0, 1 failed, 2 wrong use
 */
export async function run({ argv, root }: { argv: readonly string[]; root: string }): Promise<number> {
  if (wantsRootHelp(argv)) {
    process.stdout.write(rootHelp(process.stdout.columns));
    return 0;
  }
  let config: Config | undefined;
  try {
    const [{ useInstallation }, { refuseWithdrawn }] = await Promise.all([import('./installation.js'), import('./withdrawn.js')]);
    const { rows } = useInstallation({ root, file: configFlag(argv) });
    refuseWithdrawn(argv, rows);
    const [{ loadOclif }, { run: runOclif }] = await Promise.all([import('./oclif.js'), import('@oclif/core/run')]);
    config = await loadOclif();
    await runOclif([...argv], config);
    return 0;
  } catch (error) {
    return failed(error, argv, config);
  }
}

async function failed(error: unknown, argv: readonly string[], config: Config | undefined): Promise<number> {
  const { code, oclif } = (error ?? {}) as { code?: unknown; oclif?: { exit?: number } };
  if (code === 'EEXIT') return oclif?.exit ?? 0;
  const { failureOf, printed } = await import('./failure.js');
  const { command, flags } = commandOf(argv, config);
  const failure = failureOf(error, { command, flags, commands: idsOf(config) });
  process.stderr.write(printed(failure));
  if (argv.includes('--log-level=debug') && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
  return failure.exitStatus;
}

/** The value of `--config`, needed before the flags are parsed: its file may name a plugin folder, and plugins bring flags. */
function configFlag(argv: readonly string[]): string | undefined {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  for (let i = 0; i < end; i++) {
    if (argv[i] === '--config') return argv[i + 1];
    if (argv[i]!.startsWith('--config=')) return argv[i]!.slice('--config='.length);
  }
  return undefined;
}

/** The command that was meant, with its flags. */
function commandOf(argv: readonly string[], config: Config | undefined): { command: string; flags: string[] } {
  const words = argv.slice(0, 2).filter((word) => !word.startsWith('-'));
  for (const id of [words.join(':'), words[0] ?? '']) {
    const found = id ? config?.findCommand(id) : undefined;
    if (found) return { command: id.replaceAll(':', ' '), flags: Object.keys(found.flags) };
  }
  return { command: '', flags: [] };
}

/** What may be typed after `gateway`, without the aliases that nobody is to learn. */
function idsOf(config: Config | undefined): string[] {
  const shown = config?.commands.filter(({ id, hiddenAliases }) => !hiddenAliases.includes(id)) ?? [];
  const topics = config?.topics ?? [];
  return [...shown.map(({ id }) => id.replaceAll(':', ' ')), ...topics.map(({ name }) => name)];
}
