import { parseArgs } from 'node:util';
import os from 'node:os';
import { neighbourhood, ENDPOINTS, quantile } from '../reliability/neighbourhood.js';
import { ms, ratio } from './figures.js';

// The cost of nine hostile endpoints for a thousand others: latency from production to arrival,
// alternately without and with them. Run: npm run bench -- neighbours [--pairs 5] [--seconds 10]
// [--rate 300] [--hostile-rate 10]

const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '300' },
    'hostile-rate': { type: 'string', default: '10' },
  },
});
const pairs = Number(values.pairs);
const seconds = Number(values.seconds);
const rate = Number(values.rate);
const hostileRate = Number(values['hostile-rate']);

const scene = await neighbourhood();
try {
  console.log(
    `neighbours: node ${process.version}, ${os.cpus().length} cores; ${ENDPOINTS} endpoints, ${rate} events/s to ${ENDPOINTS - scene.hostile.all.length} of them, ` +
      `${hostileRate}/s to each of nine hostile ones; ${pairs} pairs of ${seconds} s`,
  );
  await scene.block({ seconds: Math.min(seconds, 5), rate, hostileRate });
  const warm = scene.rss();
  const all: Record<'without' | 'beside', number[]> = { without: [], beside: [] };
  for (let pair = 0; pair < pairs; pair++) {
    // The order alternates too.
    for (const which of pair % 2 === 0
      ? (['without', 'beside'] as const)
      : (['beside', 'without'] as const)) {
      const cpu = scene.cpu();
      const block = await scene.block({
        seconds,
        rate,
        hostileRate: which === 'beside' ? hostileRate : 0,
      });
      all[which].push(...block);
      const used = (scene.cpu() - cpu).toFixed(2);
      console.log(
        `  ${which.padEnd(8)} p50 ${ms(quantile(block, 0.5))}, p99 ${ms(quantile(block, 0.99))}, worst ${ms(quantile(block, 1))}, agent ${used} s of a core`,
      );
    }
  }
  for (const share of [0.5, 0.99]) {
    const [without, beside] = [quantile(all.without, share), quantile(all.beside, share)];
    console.log(
      `p${share * 100}: ${ms(without)} without, ${ms(beside)} beside nine hostile endpoints (${ratio(beside, without)})`,
    );
  }
  console.log(
    `memory of the agent: ${Math.round(warm / 1e6)} MB when warm, ${Math.round(scene.peakRss() / 1e6)} MB at most`,
  );
} finally {
  await scene.close();
}
