import type { HeldDelivery } from '../model/delivery.js';

/** A project may hold this multiple of the free capacity: 7/8 if alone, 7/15 if two compete. */
const PROJECT_SHARE = 7;
/** The same for an endpoint: 5/6 when alone. */
const ENDPOINT_SHARE = 5;
/** A project is busy from this multiple, 2/3 if alone; each endpoint can then hold a commit. */
const BUSY_SHARE = 2;
/** Reserved for endpoints that answer, and for a project's first delivery, which is a probe. */
const RESERVED = 1 / 4;

interface HeldRoomOptions {
  readonly bytes: number;
  readonly deliveries: number;
}

/**
 * Tracks held deliveries and their bytes. The less capacity is free, the less a project or an
 * endpoint may add. A delivery counts at least its part of the allowed number.
 */
export class HeldRoom {
  readonly #deliveries = new Map<string, HeldDelivery>();
  readonly #used = new Map<string, number>();
  readonly #leastBytes: number;
  #bytes = 0;

  constructor(private readonly options: HeldRoomOptions) {
    this.#leastBytes = Math.max(1, Math.floor(options.bytes / options.deliveries));
  }

  /** How many more deliveries can be held, of any project; 0 or less: none. */
  get left(): number {
    return this.#bytes >= this.options.bytes ? 0 : this.options.deliveries - this.#deliveries.size;
  }

  get size(): number {
    return this.#deliveries.size;
  }

  get(deliveryId: string): HeldDelivery | undefined {
    return this.#deliveries.get(deliveryId);
  }

  /** Adds a delivery regardless of its share, replacing one with the same id. */
  add(delivery: HeldDelivery): void {
    if (this.#deliveries.get(delivery.id) === delivery) return;
    this.remove(delivery.id);
    this.#deliveries.set(delivery.id, delivery);
    this.#count(delivery, 1);
  }

  remove(deliveryId: string): HeldDelivery | undefined {
    const delivery = this.#deliveries.get(deliveryId);
    if (!delivery) return undefined;
    this.#deliveries.delete(deliveryId);
    this.#count(delivery, -1);
    return delivery;
  }

  /** Returns the free bytes, without the reserve unless `answers`. 0 or less: none. */
  free(answers: boolean): number {
    return this.options.bytes * (answers ? 1 : 1 - RESERVED) - this.#bytes;
  }

  /** Returns the project's free share; 0 bytes or less: none. One delivery may exceed it. */
  ofProject(
    projectId: string,
    answers: boolean,
  ): { readonly bytes: number; readonly deliveries: number } {
    const used = this.#used.get(projectId) ?? 0;
    // Added bytes are no longer free.
    const bytes = (PROJECT_SHARE * this.free(answers) - used) / (PROJECT_SHARE + 1);
    if (bytes <= 0 && used === 0 && this.free(true) > 0) return { bytes: 1, deliveries: 1 };
    return { bytes, deliveries: Math.ceil(bytes / this.#leastBytes) };
  }

  /** Whether the project holds most of its share, which only happens when its endpoints answer. */
  isBusy(projectId: string): boolean {
    return (this.#used.get(projectId) ?? 0) >= BUSY_SHARE * this.free(true);
  }

  /** Whether another delivery of the endpoint may be added, of any size. */
  has(
    { projectId, endpointId }: Pick<HeldDelivery, 'projectId' | 'endpointId'>,
    answers: boolean,
  ): boolean {
    const used = this.#used.get(projectId) ?? 0;
    const free = this.free(answers || used === 0);
    return used < PROJECT_SHARE * free && (this.#used.get(endpointId) ?? 0) < ENDPOINT_SHARE * free;
  }

  #count({ projectId, endpointId, headers, body }: HeldDelivery, sign: 1 | -1): void {
    let size = body.byteLength;
    for (const name in headers) size += name.length + headers[name]!.length;
    const bytes = sign * Math.max(this.#leastBytes, size);
    this.#bytes += bytes;
    for (const id of [projectId, endpointId]) {
      const used = (this.#used.get(id) ?? 0) + bytes;
      if (used > 0) this.#used.set(id, used);
      else this.#used.delete(id);
    }
  }
}
