import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { cached } from '../../support/start/cached.js';
import { KAFKA_VERSION, kafkaJars } from '../../support/start/kafka-jars.js';
import { tempFolder } from '../../support/start/keep.js';
import type { Podman } from '../containers.js';

const INCLUDE = 'postgresql,redis-server,prometheus,openjdk-21-jre-headless,netcat-openbsd,wget';

/** Builds the images of other projects that a compose file names, from packages of Debian and Maven. */
export async function standIns({ podman }: Podman, compose: string): Promise<void> {
  const programs = cached('gateway-services-13', (filling) => {
    process.stderr.write('making a Debian with services (mmdebstrap)\n');
    execFileSync(
      'mmdebstrap',
      [
        '--variant=minbase',
        `--include=${INCLUDE}`,
        '--aptopt=APT::Install-Recommends "false"',
        'trixie',
        path.join(filling, 'root.tar'),
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
  });
  await podman('import', path.join(programs, 'root.tar'), 'localhost/services');
  const context = tempFolder('stand-ins');
  fs.cpSync(fileURLToPath(new URL('.', import.meta.url)), context, { recursive: true });
  fs.cpSync(kafkaJars(KAFKA_VERSION), path.join(context, 'kafka'), { recursive: true });
  for (const target of ['postgres', 'redis', 'kafka', 'prometheus', 'grafana']) {
    const [, tag = ''] = new RegExp(`image: (\\S+/${target}:\\S+)`).exec(compose) ?? [];
    execFileSync('buildah', ['build', `--target=${target}`, `--tag=${tag}`, context], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  }
}
