// A device at the level of messages, over what FEEDGATE_TRANSPORT names: a WebSocket, or HTTP streaming. Both have
// `ask`, `tell`, `reply`, `until`, `closed`, `cut`, `pause`, `resume`, `lines` and `code`.

import { Stream } from "./stream.js";
import { TRANSPORT } from "./transport.js";
import { Wire } from "./wire.js";

export const Device = { websocket: Wire, http_stream: Stream }[TRANSPORT];
