import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { discard, forget, keep, tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';
import { Unavailable } from '../support/start/unavailable.js';
import { until } from '../support/until.js';

const execute = promisify(execFile);

/** Debian's packages by program. */
const PROGRAMS = {
  podman: 'podman',
  buildah: 'buildah',
  crun: 'crun',
  mmdebstrap: 'mmdebstrap',
  newuidmap: 'uidmap',
  '/usr/lib/podman/netavark': 'netavark',
  '/usr/lib/podman/aardvark-dns': 'aardvark-dns',
  iptables: 'iptables',
  ip: 'iproute2',
};

/** A user without rights. */
const USER = 'gateway-containers';

/** Podman with a storage of its own. */
export interface Podman {
  /** The words before a program that runs beside the containers, in their namespaces. */
  readonly within: readonly string[];
  /** The program and arguments that precede those of `podman`. */
  readonly command: readonly string[];
  /** Returns the output. Throws with both streams. */
  podman(...args: readonly string[]): Promise<string>;
}

export interface Containers extends Podman {
  /** Containers of a user without rights. */
  readonly rootless: Podman;
  /** Ends all containers and deletes all images. */
  close(): Promise<void>;
}

/**
 * Installs podman, buildah and crun, and starts a place for containers: a mount and a process
 * namespace that end with this process. `buildah`, run by this process, uses the same images.
 * @param options.ownNetwork containers have a network without a way out, where every port is free
 * @throws `Unavailable` without root
 */
export async function containers({ ownNetwork = false } = {}): Promise<Containers> {
  if (process.getuid?.() !== 0) throw new Unavailable('tests of containers need root');
  for (const [program, name] of Object.entries(PROGRAMS))
    installed(program, [name], 'for containers');
  const folder = tempFolder('containers');
  fs.chmodSync(folder, 0o755);
  const namespaces = ['--mount', '--pid', ...(ownNetwork ? ['--net'] : [])];
  const place = await startPlace(namespaces);
  const root = settings(folder, 'root');
  Object.assign(process.env, root, { BUILDAH_ISOLATION: 'chroot' });
  return {
    ...podmanIn(place, namespaces, root, []),
    rootless: podmanIn(place, namespaces, ...withoutRights(folder)),
    close: async () => {
      place.kill('SIGKILL');
      await once(place, 'exit');
      forget(place.pid!);
      // `buildah` mounts its storage here, on this side of the namespaces.
      spawnSync('umount', ['--recursive', path.join(folder, 'root/images/overlay')]);
      discard(folder);
    },
  };
}

/**
 * Starts the first process of the namespaces. It mounts cgroup2 alone, because crun refuses a
 * mixture of both versions.
 */
async function startPlace(namespaces: readonly string[]): Promise<ChildProcess> {
  const own = namespaces.includes('--net')
    ? 'ip link set lo up && mkdir -p /run/containers && mount -t tmpfs none /run/containers && '
    : '';
  const first = `${own}mount --make-rshared / && mount -t cgroup2 none /sys/fs/cgroup && echo ready && sleep infinity & wait`;
  const place = spawn(
    'unshare',
    [...namespaces, '--fork', '--kill-child', '--mount-proc', 'sh', '-c', first],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  keep(place.pid!, 'SIGKILL');
  let output = '';
  place.stdout.on('data', (text: Buffer) => (output += text.toString()));
  await until('the namespaces for containers', () => output.includes('ready'));
  return place;
}

function podmanIn(
  place: ChildProcess,
  namespaces: readonly string[],
  env: Readonly<Record<string, string>>,
  as: readonly string[],
): Podman {
  const [first = ''] = fs
    .readFileSync(`/proc/${place.pid}/task/${place.pid}/children`, 'utf8')
    .split(' ');
  const within = [
    'nsenter',
    `--target=${first}`,
    ...namespaces,
    '--wd=/',
    '--',
    ...as,
    'env',
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
  ];
  const command = [...within, 'podman'];
  return {
    within,
    command,
    podman: async (...args) => {
      const [program = '', ...rest] = [...command, ...args];
      return (await execute(program, rest, { maxBuffer: 64 << 20 })).stdout;
    },
  };
}

/** A machine may lack cgroups, systemd, and the right to raise limits. */
const configuration = (folder: string) => `
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=4000:4000", "nproc=4000:4000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
[network]
network_backend = "netavark"
network_config_dir = "${folder}/networks"
`;

/** Writes configuration files for a user, and returns the variables that name them. */
function settings(folder: string, name: string): Readonly<Record<string, string>> {
  const own = path.join(folder, name);
  fs.mkdirSync(own);
  const write = (file: string, text: string) => {
    fs.writeFileSync(path.join(own, file), text);
    return path.join(own, file);
  };
  const storage = `[storage]\ndriver = "overlay"\nrunroot = "${own}/run"\ngraphroot = "${own}/images"\n`;
  return {
    CONTAINERS_CONF: write('containers.conf', configuration(own)),
    CONTAINERS_STORAGE_CONF: write('storage.conf', storage),
  };
}

/** Makes a user, and returns the environment of its containers and a command that becomes it. */
function withoutRights(folder: string): [Readonly<Record<string, string>>, readonly string[]] {
  try {
    execFileSync('id', [USER], { stdio: 'ignore' });
  } catch {
    // Normal users have subordinate ids, system users have none.
    execFileSync('useradd', ['--no-create-home', USER]);
  }
  const home = path.join(folder, 'home');
  fs.mkdirSync(home, { mode: 0o700 });
  const env = { ...settings(folder, 'rootless'), HOME: home, XDG_RUNTIME_DIR: home };
  execFileSync('chown', ['-R', USER, home, path.join(folder, 'rootless')]);
  return [env, ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--init-groups', '--reset-env']];
}
