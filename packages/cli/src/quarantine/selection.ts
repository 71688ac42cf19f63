import * as Flags from '@oclif/core/flags';
import { parseDuration } from '../app/duration.js';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { didYouMean } from '@gateway/core/errors';
import { rejectCodes } from '@gateway/agent/model';
import type { FlagValues } from '@gateway/core/config';
import type { QuarantineSelection, QuarantineStatus } from '@gateway/store/quarantine';

/** The flags that select quarantined messages. */
export const selectionFlags = {
  'project-id': Flags.string({ helpValue: '<id>', summary: 'Messages of this project.' }),
  'source-id': Flags.string({ helpValue: '<id>', summary: 'Messages of this source.' }),
  code: Flags.string({ helpValue: '<code>', summary: 'Messages that were refused with this code, for example not_json.' }),
  time: Flags.string({ helpValue: '<duration>', summary: 'Messages of the last 2h, 30m, …, by their time at the broker.' }),
};

const STATUSES: readonly string[] = ['quarantined', 'replayed', 'discarded'] satisfies QuarantineStatus[];

/**
 * What the flags select.
 *
 * @throws GatewayError `wrong_use` with what is allowed
 */
export function selectionOf(flags: FlagValues): QuarantineSelection {
  const time = text(flags['time']);
  return {
    projectId: idOf('--project-id', text(flags['project-id'])),
    sourceId: idOf('--source-id', text(flags['source-id'])),
    code: oneOf('--code', text(flags['code']), Object.keys(rejectCodes)),
    status: oneOf('--status', text(flags['status']), STATUSES) as QuarantineStatus | undefined,
    from: time === undefined ? undefined : new Date(Date.now() - parseDuration('--time', time)),
  };
}

/** The names of the selecting flags that were given, with their dashes. */
export function givenSelection(flags: FlagValues): string[] {
  return Object.keys(selectionFlags)
    .filter((name) => flags[name] !== undefined)
    .map((name) => `--${name}`);
}

/**
 * The ids of messages as arguments, each once.
 *
 * @throws GatewayError `wrong_use` for what is no id
 */
export function idsOf(given: readonly string[]): string[] {
  return [...new Set(given.map((id) => idOf('the argument', id)!))];
}

/** A count of rows between 1 and 10,000; without one `otherwise`. */
export function limitOf(given: FlagValues[string], otherwise: number): number {
  const limit = text(given);
  if (limit === undefined) return otherwise;
  if (/^[1-9]\d{0,4}$/.test(limit) && Number(limit) <= 10_000) return Number(limit);
  throw new GatewayError('wrong_use', {
    sentence: `--limit must be an integer from 1 to 10000, not ${JSON.stringify(limit)}`,
    fix: `leave it away for ${otherwise}`,
  });
}

function text(given: FlagValues[string]): string | undefined {
  return typeof given === 'string' ? given : undefined;
}

function idOf(name: string, given: string | undefined): string | undefined {
  const id = given?.trim().toLowerCase();
  if (id === undefined || isId(id)) return id;
  throw new GatewayError('wrong_use', {
    sentence: `${name} must be an id, not ${JSON.stringify(given)}`,
    fix: 'ids look like 019ab3c4-5d6e-8f70-9123-456789abcdef; `gateway utils quarantine list --json` shows those of messages, projects and sources',
  });
}

function oneOf(name: string, given: string | undefined, known: readonly string[]): string | undefined {
  if (given === undefined || known.includes(given)) return given;
  throw new GatewayError('wrong_use', {
    sentence: `${name} must be one of ${known.join(', ')}, not ${JSON.stringify(given)}${didYouMean(given, known)}`,
    fix: 'correct it, or leave it away',
  });
}
