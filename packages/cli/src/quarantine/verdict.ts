import type { Replayed, DryRun } from '@gateway/agent/inspect';
import { escapeLine } from '../output/escape-terminal.js';

/** What would become of a message, for a person. */
export function verdictLine(verdict: DryRun): string {
  switch (verdict.kind) {
    case 'accepted': {
      const events = verdict.events.map(({ eventType, id }) => `${eventType} (${id})`);
      return `would be accepted → ${events.length === 1 ? 'event' : `${events.length} events`} ${escapeLine(events.join(', '), 400)}`;
    }
    case 'dropped':
      return 'would be dropped by the function, and discarded';
    case 'refused':
      return `would be refused: ${verdict.refusal.code} ${escapeLine(verdict.refusal.reason)}`;
  }
}

/** What became of a message, for a person. */
export function replayedLine(replayed: Replayed): string {
  switch (replayed.kind) {
    case 'replayed':
      return `replayed → ${named(replayed.ids)}`;
    case 'duplicate':
      return `duplicate: the ${named(replayed.ids)} ${replayed.ids.length === 1 ? 'exists' : 'exist'} already`;
    case 'dropped':
      return 'dropped by the function, and discarded';
    case 'refused':
      return `still refused: ${replayed.refusal.code} ${escapeLine(replayed.refusal.reason)}`;
    case 'changed':
      return 'left alone: somebody replayed, discarded or edited it meanwhile';
  }
}

function named(ids: readonly string[]): string {
  return `${ids.length === 1 ? 'event' : `${ids.length} events`} ${ids.join(', ')}`;
}
