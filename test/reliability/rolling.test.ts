// deadline: 240 s, long
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import { kafka } from '../support/kafka.js';
import { currentBuild } from '../support/gateway.js';
import { newerBuild } from './proof/broken-builds.js';
import { upgradeAndBack } from './rolling.js';

const rolling = suite('reliability/rolling');

const broker = await kafka();
rolling.after(() => broker.close());

rolling(
  'an upgrade with a migration behind a load balancer, and the way back without rolling it back, lose, repeat and refuse nothing',
  async () => {
    const newer = newerBuild();
    try {
      const next = path.join(newer.migrations, '9999_next');
      fs.writeFileSync(
        `${next}.up.sql`,
        '-- blocks: reads and writes of events, event_deliveries\nalter table events add column region text;\nalter table event_deliveries add column priority integer not null default 0;\n',
      );
      fs.writeFileSync(
        `${next}.down.sql`,
        'alter table events drop column region;\nalter table event_deliveries drop column priority;\n',
      );
      const waits = await upgradeAndBack(
        {
          before: { bin: currentBuild, isRolling: true },
          next: { bin: newer.bin, isRolling: true },
          ofEach: 1,
        },
        broker,
      );
      for (const it of waits) console.log(`    ${JSON.stringify(it)}`);
    } finally {
      newer.close();
    }
  },
);

rolling.run();
