// `npm run hostile -- [--seconds 10] [--rounds 3] [--attack <part of a name>]`: measures a
// neighbour alternately alone and during each attack. docs/internals/threat-model.md lists the
// defences. Exits with status 1 if a neighbour waits or loses a message, a process takes too much
// memory, or an attack did not take place.
import os from 'node:os';
import { parseArgs } from 'node:util';
import { quantile } from '../reliability/neighbourhood.js';
import { arena, together, type Round } from './arena.js';
import { attacks } from './attacks.js';
import { faultsOf, p50Of, p99Of } from './judge.js';

// A service missing on this machine is a failure here: nothing would be proved.
process.env['CI'] = 'true';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    attack: { type: 'string', default: '' },
    scale: { type: 'string', default: '1' },
  },
});
const WARMING_SECONDS = 3;
const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
const chosen = attacks.filter(({ name }) =>
  values.attack.split('|').some((part) => name.includes(part)),
);
if (!(seconds > 0 && rounds > 0) || chosen.length === 0) {
  const problem =
    chosen.length === 0
      ? `no attack has "${values.attack}" in its name`
      : '--seconds and --rounds must be positive numbers';
  console.error(`error: ${problem}`);
  process.exit(2);
}
console.log(
  `node ${process.version}, ${os.cpus().length} cores; ${chosen.length} attacks, ${rounds} rounds of ${seconds} s each, beside 100 deliveries a second`,
);

const figures = (rounds: readonly Round[]) => {
  const { deliveries, requests, health, memory } = together(rounds);
  const each = rounds.map((round) => p99Of([round]).toFixed(1));
  return (
    `p50 ${quantile(deliveries, 0.5).toFixed(1)}, p99 ${p99Of(rounds).toFixed(1)} ms (${each.join(', ')}); API p99 ${quantile(requests, 0.99).toFixed(0)} ms; ` +
    `healthz ${health.toFixed(0)} ms; server ${memory.server}, agent ${memory.agent}, sandbox ${memory.children} MB`
  );
};

const scene = await arena(Number(values.scale));
let failed = 0;
try {
  // Warms up: first requests are slow.
  await scene.measure(3);
  for (const attack of chosen) {
    // Code that runs for the first time is several times slower; a long-running agent has run most
    // of its code.
    await scene.measure(WARMING_SECONDS, attack.name);
    const pairs: { readonly alone: Round; readonly beside: Round }[] = [];
    for (let k = 0; k < rounds; k++)
      pairs.push({
        alone: await scene.measure(seconds),
        beside: await scene.measure(seconds, attack.name),
      });
    const [alone, beside] = [pairs.map((it) => it.alone), pairs.map((it) => it.beside)];
    const faults = faultsOf(attack, { alone, beside });
    if (faults.length > 0) failed++;
    const ratio = p50Of(beside) / p50Of(alone);
    console.log(
      `${faults.length > 0 ? '✘' : '•'} ${attack.name}: p50 ${ratio.toFixed(2)}×, p99 ${p99Of(beside).toFixed(1)} ms\n    alone   ${figures(alone)}\n    beside  ${figures(beside)}`,
    );
    console.log(
      `    ${Object.entries(together(beside).evidence)
        .map(([what, count]) => `${what}: ${count}`)
        .join(', ')}`,
    );
    for (const fault of faults) console.log(`    ${fault}`);
  }
} finally {
  await scene.close();
}
console.log(
  `${chosen.length - failed} attacks without effect on the neighbour, ${failed} with one`,
);
process.exitCode = failed > 0 ? 1 : 0;
