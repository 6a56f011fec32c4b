// SPDX-License-Identifier: Apache-2.0
#include "api/types/interop.hpp"

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t interop_seconds_max = 3600;
constexpr std::uint32_t interop_message_bytes_max = 8 << 20;

}  // namespace

template <class F, Of<InteropRequest> V>
void fields(F& f, V& request) {
    f.defaulted("seconds", request.seconds);
    f.defaulted("test", request.test);
    f.defaulted("message_bytes", request.message_bytes);
}

template <class F, Of<InteropWindow> V>
void fields(F& f, V& clients) {
    f.value("attachment", clients.attachment);
    f.value("address", clients.address);
    f.value("test", clients.test);
    f.value("message_bytes", clients.message_bytes);
    f.value("open_until", clients.open_until);
    f.value("commands", clients.commands);
    f.defaulted("rping", clients.rping);
    f.value("served", clients.served);
    f.value("refused", clients.refused);
}

void check(JsonReader& reader, InteropRequest const& request) {
    if (request.seconds < 1 || request.seconds > interop_seconds_max)
        reader.complain("seconds", fmt::format("must be from 1 to {}", interop_seconds_max));
    if (request.message_bytes < 1 || request.message_bytes > interop_message_bytes_max)
        reader.complain("message_bytes",
                        fmt::format("must be from 1 to {}", interop_message_bytes_max));
}

template struct Json<InteropRequest>;
template struct Json<InteropWindow>;

}  // namespace vfmgr
