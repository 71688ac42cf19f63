// @ts-check
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { command, succeed } from '../prepare/command.mjs';
import { packNpm } from './npm.mjs';

/**
 * Builds the image with buildah: an archive for `docker load` or `podman load` per architecture.
 * Another architecture than this machine's needs its emulator (`qemu-user-static`).
 * @param {object} options
 * @param {string} options.root
 * @param {string} options.out
 * @param {string} options.version
 * @param {typeof import('./names.mjs').names} options.names
 * @param {string[]} [options.architectures]
 * @param {(architecture: string) => string} [options.base] instead of the base image in the
 * Dockerfile
 * @param {string} [options.npmrc] configures npm during the build
 * @returns {Promise<string[]>} the archives
 */
export async function buildImage({
  root,
  out,
  version,
  names,
  architectures = ['amd64', 'arm64'],
  base,
  npmrc,
}) {
  const context = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-image-'));
  const revision = await command('git', ['rev-parse', 'HEAD'], { cwd: root });
  const archives = [];
  try {
    await packNpm({ root, out: context, names });
    for (const architecture of architectures) {
      const tag = `localhost/gateway:${version}-${architecture}`;
      const archive = path.join(out, `gateway-image-${version}-${architecture}.tar`);
      await succeed(
        'buildah',
        [
          'build',
          `--file=${path.join(root, 'deploy/image/Dockerfile')}`,
          `--tag=${tag}`,
          `--platform=linux/${architecture}`,
          // The OCI format has no health check.
          '--format=docker',
          `--build-arg=VERSION=${version}`,
          ...(revision.ok ? [`--build-arg=REVISION=${revision.output.trim()}`] : []),
          ...(base ? [`--build-arg=BASE=${base(architecture)}`] : []),
          ...(npmrc ? [`--secret=id=npmrc,src=${npmrc}`] : []),
          context,
        ],
        { cwd: root },
      );
      fs.rmSync(archive, { force: true });
      await succeed('buildah', ['push', tag, `docker-archive:${archive}:gateway:${version}`], {
        cwd: root,
      });
      archives.push(archive);
    }
    return archives;
  } finally {
    fs.rmSync(context, { recursive: true });
  }
}
