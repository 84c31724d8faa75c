"""Reads requests of OTLP, each in base64 on a line of its own, with the official schema, and writes each span as JSON."""

import base64
import json
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


def values(attributes):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def main():
    for line in sys.stdin:
        for resource in ExportTraceServiceRequest.FromString(base64.b64decode(line)).resource_spans:
            of = values(resource.resource.attributes)
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                print(json.dumps({
                    "service": of["service.name"],
                    "instance": of.get("service.instance.id"),
                    "resource": of,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": Span.SpanKind.Name(span.kind),
                    "began": span.start_time_unix_nano,
                    "ended": span.end_time_unix_nano,
                    "attributes": values(span.attributes),
                    "failed": span.status.message if span.status.code == Status.STATUS_CODE_ERROR else None,
                }), flush=True)


main()
