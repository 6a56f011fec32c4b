// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a client sends to have VFs attached somewhere, and as what a host answers about
// a reservation: refused with a reason, or understood; and only a success is one.
#include <cstdint>

#include "service/fleet/placement/host_for.hpp"
#include "service/fleet/placement/host_words.hpp"
#include "tests/fuzz/require.hpp"

using namespace vfmgr;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const text(reinterpret_cast<char const*>(data), size);
    if (auto const places = fleet::read_attach_places(text)) {
        auto const again = fleet::read_attach_places(places->body);
        require(again && again->host.empty() && again->vms == places->vms);
        require(again->body == places->body);
    } else {
        require(!places.error().detail.empty());
    }
    for (int const status : {200, 404, 409, 412, 500, 503}) {
        http::Response answer;
        answer.status = status;
        answer.body = text;
        auto const word = fleet::word_of(answer);
        require(status == 200 || !std::holds_alternative<Reservation>(word));
        require(status != 412 || std::holds_alternative<fleet::Outdated>(word));
        require(status != 500 || std::holds_alternative<fleet::Unknown>(word));
        require(status != 200 || !std::holds_alternative<fleet::HostRefusal>(word));
    }
    return 0;
}
