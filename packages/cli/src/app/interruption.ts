import { constants } from 'node:os';

export interface Interruption {
  /** The exit status of a command that was told to stop, as shells have it: 130 after Ctrl-C; 0 while nobody said so. */
  readonly status: number;
  /** Leaves the signals to the system again. */
  done(): void;
}

/** Notes the first Ctrl-C or SIGTERM, so that a command can end where everything is consistent; a second one ends it at once. */
export function noteInterruption(): Interruption {
  let status = 0;
  const note = (signal: NodeJS.Signals) => {
    status = 128 + constants.signals[signal];
    done();
  };
  const done = () => {
    process.off('SIGINT', note);
    process.off('SIGTERM', note);
  };
  process.on('SIGINT', note);
  process.on('SIGTERM', note);
  return {
    get status() {
      return status;
    },
    done,
  };
}
