// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { command, succeed } from '../prepare/command.mjs';

/**
 * Builds the image from the npm packages in `out` with buildah: an archive for `docker load` or
 * `podman load` per architecture. Another architecture than this machine's needs its emulator
 * (`qemu-user-static`).
 * @param {object} options
 * @param {string} options.root
 * @param {string} options.out
 * @param {string} options.version
 * @param {string | undefined} options.base instead of the base image in the Dockerfile
 * @param {string | undefined} options.npmrc configures npm during the build
 * @returns {Promise<string[]>} the archives
 */
export async function buildImage({ root, out, version, base, npmrc }) {
  const revision = await command('git', ['rev-parse', 'HEAD'], { cwd: root });
  const archives = [];
  for (const architecture of ['amd64', 'arm64']) {
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
        ...(base ? [`--build-arg=BASE=${base}`] : []),
        ...(npmrc ? [`--secret=id=npmrc,src=${path.resolve(npmrc)}`] : []),
        out,
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
}
