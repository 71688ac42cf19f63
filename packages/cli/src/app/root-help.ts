import { VERSION } from '@gateway/core/process';
import { summaries, topics } from './command-index.js';
import { textTable } from '../output/table.js';

export const description = 'Webhook gateway: messages of queues and topics become signed, recorded deliveries.';

/**
 * What `gateway` alone prints. Topics stand among the commands, because to a person `migrate` is a command. It needs neither the command line
 * library nor a command, and answers in half of their time.
 *
 * @param width columns of the terminal
 */
export function rootHelp(width = 80): string {
  const rows = Object.entries({ ...topics, ...summaries }).filter(([id]) => !id.includes(':'));
  const list = textTable(
    rows.sort(([a], [b]) => (a < b ? -1 : 1)),
    width - 2,
  ).replace(/^/gm, '  ');
  return [
    description,
    `VERSION\n  ${versionLine()}`,
    'USAGE\n  $ gateway [COMMAND]',
    `COMMANDS\n${list}`,
    'gateway <command> --help tells more about a command.\n',
  ].join('\n\n');
}

/** What `gateway --version` prints. */
export function versionLine(): string {
  return `gateway/${VERSION} ${process.platform}-${process.arch} node-${process.version}`;
}

/** True when nothing but this help is asked for. */
export function wantsRootHelp(argv: readonly string[]): boolean {
  const [word, ...rest] = argv;
  return word === undefined || (rest.length === 0 && ['help', '--help', '-h'].includes(word));
}
