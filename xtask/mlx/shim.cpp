// What mlx-rs calls and mlx-c does not have outside Apple systems. Compiled into libmlxc.a by `cargo xtask setup`.
//
// The four half-precision accessors hand out the 16 bits of a value: mlx-c has them only where the C compiler knows
// half-precision types, and then under types that differ from one processor to the next. Set-up builds mlx-c without
// them everywhere (by defining MLX_HALF_H), so that these are the only ones.

#include <chrono>
#include <cstdint>
#include <cstring>

#include "mlx/c/error.h"
#include "mlx/c/private/array.h"
#include "mlx/mlx.h"

namespace {

static_assert(sizeof(mlx::core::float16_t) == sizeof(uint16_t));
static_assert(sizeof(mlx::core::bfloat16_t) == sizeof(uint16_t));

template <typename Half>
int item(uint16_t* result, mlx_array handle) {
  try {
    auto value = mlx_array_get_(handle).item<Half>();
    std::memcpy(result, &value, sizeof(uint16_t));
    return 0;
  } catch (const std::exception& error) {
    mlx_error("%s", error.what());
    return 1;
  }
}

template <typename Half>
const uint16_t* data(mlx_array handle) {
  try {
    return reinterpret_cast<const uint16_t*>(mlx_array_get_(handle).data<Half>());
  } catch (const std::exception& error) {
    mlx_error("%s", error.what());
    return nullptr;
  }
}

} // namespace

extern "C" {

int mlx_array_item_float16(uint16_t* result, mlx_array handle) {
  return item<mlx::core::float16_t>(result, handle);
}

int mlx_array_item_bfloat16(uint16_t* result, mlx_array handle) {
  return item<mlx::core::bfloat16_t>(result, handle);
}

const uint16_t* mlx_array_data_float16(mlx_array handle) {
  return data<mlx::core::float16_t>(handle);
}

const uint16_t* mlx_array_data_bfloat16(mlx_array handle) {
  return data<mlx::core::bfloat16_t>(handle);
}

// mlx-rs seeds its implicit random state with this clock of Apple's kernel.
uint64_t mach_approximate_time() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

} // extern "C"
