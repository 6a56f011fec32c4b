// SPDX-License-Identifier: Apache-2.0
// Streams: a stream's work is done after the set number of queries.
#include <utility>

#include "tests/fakes/gpu/standin.hpp"

using namespace vfmgr::standin;

extern "C" {

int cuStreamCreate(void** stream, unsigned flags) {
    if (flags > 1) return invalid_value;
    if (!state().current) return invalid_context;
    *stream = std::make_unique<Stream>(Stream{.gpu = state().current->gpu}).release();
    return success;
}

int cuStreamQuery(void* of) {
    auto& stream = *static_cast<Stream*>(of);
    if (stream.stuck) return not_ready;
    if (!stream.work) return success;
    if (stream.questions-- > 0) return not_ready;
    std::exchange(stream.work, nullptr)(stream.of);
    return success;
}

int cuStreamDestroy_v2(void* of) {
    std::unique_ptr<Stream> const owner(static_cast<Stream*>(of));
    return owner ? success : invalid_value;
}

}  // extern "C"
