// SPDX-License-Identifier: Apache-2.0
// An orchestrator as its author writes it, on types that openapi-typescript generates from
// api/openapi.yaml: it attaches a VF, reads the events, detaches, and prints what it got as JSON.
//   client.js URL TOKEN VM PF
import createClient from "openapi-fetch";
import type { components, paths } from "./vfmgr.js";

type Event = components["schemas"]["Event"];
type Operation = components["schemas"]["Operation"];

const [url = "", token = "", vm = "", pf = ""] = process.argv.slice(2);
const Authorization = `Bearer ${token}`;
const api = createClient<paths>({ baseUrl: url, headers: { Authorization } });

async function ended(id: string): Promise<Operation> {
    for (;;) {
        const { data, error } = await api.GET("/v1/operations/{id}", {
            params: { path: { id }, query: { wait: 30 } },
        });
        if (!data) throw new Error(error.detail);
        if (data.finished_at !== null) return data;
    }
}

// Follows the events until one of this kind, from the place after `after`.
async function followed(until: Event["kind"], after: number | null,
                        connected: () => void): Promise<Event[]> {
    const stop = new AbortController();
    const { response } = await api.GET("/v1/events", {
        params: { header: after === null ? {} : { "Last-Event-ID": after } },
        parseAs: "stream",
        signal: stop.signal,
    });
    if (!response.body) throw new Error("the stream has no body");
    const events: Event[] = [];
    let text = "";
    connected();
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
            const lines = text.slice(0, end).split("\n");
            text = text.slice(end + 2);
            const data = lines.find((line) => line.startsWith("data:"));
            if (!data || lines.some((line) => line.startsWith("event:"))) continue;
            const event: Event = JSON.parse(data.slice("data:".length));
            events.push(event);
            if (event.kind !== until) continue;
            stop.abort();
            return events;
        }
    }
    throw new Error(`the stream ended before ${until}`);
}

async function attach(key: string): Promise<Operation> {
    const { data, error } = await api.POST("/v1/attachments", {
        params: { header: { "Idempotency-Key": key } },
        body: { vm, pf },
    });
    if (error) throw new Error(error.detail);
    if (!("subject" in data)) throw new Error("a dry run was answered");
    return data;
}

async function main(): Promise<void> {
    let connected = (): void => undefined;
    const following = new Promise<void>((resolve) => (connected = resolve));
    const first = followed("attached", null, () => connected());
    await following;
    const begun = await attach("client-ts");
    const again = await attach("client-ts");
    const attached = await ended(begun.id);
    const events = await first;
    const id = attached.subject.split("/").at(-1) ?? "";
    const path = { path: { id } };
    const { data: removed, error } = await api.DELETE("/v1/attachments/{id}", { params: path });
    if (error || !("subject" in removed)) throw new Error(error?.detail ?? "no operation");
    const detached = await ended(removed.id);
    // What came while nobody read is not missed.
    const missed = await followed("detached", events.at(-1)?.number ?? 0, () => undefined);
    const gone = await api.GET("/v1/attachments/{id}", { params: path });
    console.log(JSON.stringify({
        same: begun.id === again.id,
        states: [attached.state, detached.state],
        events: [...events, ...missed],
        gone: gone.error?.code,
    }));
}

await main();
