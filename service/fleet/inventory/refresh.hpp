// SPDX-License-Identifier: Apache-2.0
// What is to be read again of a host, since something has happened there: the items that an event
// is about, each once however many events are about it. A value; not synchronised.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "service/fleet/inventory/documents.hpp"

namespace vfmgr::fleet {

// A request to the host. With an empty id it is for the whole list.
struct Get {
    Collection collection = Collection::pfs;
    std::string id{};
    auto operator<=>(Get const&) const = default;
};
// "/v1/attachments/12ab34cd"; of VFs "/v1/pfs/0000:01:00.0/vfs/2".
[[nodiscard]] std::string path_of(Get const& get);
// True for a list, which comes in pages.
[[nodiscard]] bool is_list(Get const& get);

class Refresh {
  public:
    // An event came: its data, as the host sent it. One that this version does not know is about
    // anything.
    void note(std::string_view event);
    // Everything is to be read.
    void all();
    void add(Get get);
    // Takes what is to be read next. Absent: nothing.
    [[nodiscard]] std::optional<Get> next();
    [[nodiscard]] bool empty() const { return gets_.empty(); }

  private:
    std::set<Get> gets_;
};

}  // namespace vfmgr::fleet
