import type { Config } from '@oclif/core/config';
import { ExitError } from '@oclif/core/errors';
import { run as runOclif } from '@oclif/core/run';
import { failureOf, printed } from './failure.js';
import { useInstallation } from './installation.js';
import { loadOclif } from './oclif.js';
import { refuseWithdrawn } from './withdrawn.js';

/**
 * Runs the command line. Answers go to standard output, everything else to standard error.
 *
 * @param argv the arguments, without node and script
 * @param root folder of the installation, whose `package.json` names the built-in plugins
 * @returns the exit status: 0, 1 failed, 2 wrong use
 */
export async function run({ argv, root }: { argv: readonly string[]; root: string }): Promise<number> {
  let config: Config | undefined;
  try {
    const { rows } = useInstallation({ root, file: configFlag(argv) });
    refuseWithdrawn(argv, rows);
    config = await loadOclif();
    await runOclif([...argv], config);
    return 0;
  } catch (error) {
    if (error instanceof ExitError) return error.oclif.exit ?? 0;
    const { command, flags } = commandOf(argv, config);
    const failure = failureOf(error, { command, flags, commands: idsOf(config) });
    process.stderr.write(printed(failure));
    if (argv.includes('--log-level=debug') && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
    return failure.exitStatus;
  }
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
