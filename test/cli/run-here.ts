import type { Command } from '@oclif/core/command';
import { failureOf, printed } from '#cli/app/failure';
import { installation, useInstallation } from '#cli/app/installation';
import { loadOclif } from '#cli/app/oclif';
import { root } from '../meta/house.js';

useInstallation({ root, file: undefined });

/** The replaced methods of a command: its settings and its output. */
interface Open {
  configOptions(flags: object): object;
  log(text?: string): void;
  logToStderr(text?: string): void;
}

/**
 * Runs a command in this process, to test many combinations of flags: a process takes most of a
 * second to start. `runGateway` tests the whole program once per command.
 *
 * @param id of the command, `utils:quarantine:list`
 * @param config settings as in a configuration file; the environment is ignored
 */
export async function runHere(
  id: string,
  args: readonly string[],
  config: object,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const oclif = await loadOclif(id.split(':'));
  const loaded = (await oclif.findCommand(id, { must: true }).load()) as unknown as new (
    argv: string[],
    config: typeof oclif,
  ) => Command;
  const command = new loaded([...args], oclif);
  const printedHere = { stdout: '', stderr: '' };
  const file = JSON.parse(JSON.stringify(config)) as object;
  Object.assign(command as unknown as Open, {
    configOptions: (flags: object) => ({
      command: id,
      flags,
      env: {},
      file,
      rows: installation().rows,
    }),
    log: (text = '') => void (printedHere.stdout += `${text}\n`),
    logToStderr: (text = '') => void (printedHere.stderr += `${text}\n`),
  } satisfies Open);
  try {
    await command.run();
    return { code: 0, ...printedHere };
  } catch (error) {
    const { code, oclif: ended } = error as { code?: unknown; oclif?: { exit?: number } };
    if (code === 'EEXIT') return { code: ended?.exit ?? 0, ...printedHere };
    const failure = failureOf(error, { command: id.replaceAll(':', ' '), flags: [] });
    return {
      code: failure.exitStatus,
      stdout: printedHere.stdout,
      stderr: printedHere.stderr + printed(failure),
    };
  }
}
