import type { HeldDelivery } from '../model/delivery.js';

/** A project may hold this many times what is left: 7/8 of all when it is alone, 7/15 beside another that does the same. */
const PROJECT_SHARE = 7;
/** Likewise for an endpoint: 5/6 when it is alone. */
const ENDPOINT_SHARE = 5;
/** A project is busy from this many times: 2/3 when it is alone, which leaves each of its endpoints room for a commit. */
const BUSY_SHARE = 2;
/** This part of all is left to endpoints that answer, and to the first delivery of a project, which shows whether its endpoint does. */
const RESERVED = 1 / 4;

export interface HeldRoomOptions {
  readonly bytes: number;
  readonly deliveries: number;
}

type Owner = Pick<HeldDelivery, 'projectId' | 'endpointId'>;

/**
 * The held deliveries and the memory that their headers and bodies take, in shares: the less is left, the less a project and an endpoint may add, so that none
 * takes all. A delivery counts at least its part of the allowed number of deliveries.
 */
export class HeldRoom {
  readonly #deliveries = new Map<string, HeldDelivery>();
  /** By id of the project, and of the endpoint. */
  readonly #used = new Map<string, number>();
  readonly #leastBytes: number;
  #bytes = 0;

  constructor(private readonly options: HeldRoomOptions) {
    this.#leastBytes = Math.max(1, Math.floor(options.bytes / options.deliveries));
  }

  /** How many deliveries may still be held, whoever they belong to; 0 or less when there is no room. */
  get left(): number {
    return this.#bytes >= this.options.bytes ? 0 : this.options.deliveries - this.#deliveries.size;
  }

  get size(): number {
    return this.#deliveries.size;
  }

  get(deliveryId: string): HeldDelivery | undefined {
    return this.#deliveries.get(deliveryId);
  }

  /** Adds a delivery whatever its share, in place of one with the same id. */
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

  /** What is left to everybody; without the reserved part unless `answers`. 0 or less: nothing. */
  free(answers: boolean): number {
    return this.options.bytes * (answers ? 1 : 1 - RESERVED) - this.#bytes;
  }

  /** Bytes and deliveries that a project may add; 0 bytes or less: none. One delivery may exceed them. */
  ofProject(projectId: string, answers: boolean): { readonly bytes: number; readonly deliveries: number } {
    const used = this.#used.get(projectId) ?? 0;
    // What it adds is no longer left.
    const bytes = (PROJECT_SHARE * this.free(answers) - used) / (PROJECT_SHARE + 1);
    if (bytes <= 0 && used === 0 && this.free(true) > 0) return { bytes: 1, deliveries: 1 };
    return { bytes, deliveries: Math.ceil(bytes / this.#leastBytes) };
  }

  /** Whether the project holds most of what it may hold when its endpoints answer, as it does only if they do. */
  isBusy(projectId: string): boolean {
    return (this.#used.get(projectId) ?? 0) >= BUSY_SHARE * this.free(true);
  }

  /** Whether a delivery of the endpoint may be added, however large it is. */
  has({ projectId, endpointId }: Owner, answers: boolean): boolean {
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
