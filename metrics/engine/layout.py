"""Where in the arrays of the engine what stands. Kernels take these as constants."""

BLOCK = 2048  # elements worked off at once: all arrays of a block stay in the first-level cache
SEGMENT = 1 << 20  # elements summed up from zero; segments are folded in order

# Sums of one segment, float64.
N, MEAN_A, M2_A, MEAN_B, M2_B, MEAN_E, M2_E = 0, 1, 2, 3, 4, 5, 6
CO_B, CO_E, DOT_B, DOT_E, ABS_A, ABS_E = 7, 8, 9, 10, 11, 12
K_A, K_B, K_E = 13, 14, 15  # the sums are of values times 2^-k
OWN_A, OWN_B = 16, 20  # count, mean, squared deviations, k of all finite values of one side
SUMS = 24

# Counts and positions of everything since the start, int64.
FINITE, NAN_BOTH, INF_EQUAL, EQUAL, FLIPS, MISMATCHES, WORST_AT, ULP_AT = 0, 1, 2, 3, 4, 5, 6, 7
SIDE_A, SIDE_B = 8, 13  # of each side: the five below
OWN_FINITE, OWN_NAN, OWN_PLUS, OWN_MINUS, OWN_SATURATED = 0, 1, 2, 3, 4
LARGEST_ULP = 18  # bits of an uint64
SEEN_A, SEEN_B, SEEN_E, SEEN_ULP, SEEN_BITS_A, SEEN_BITS_B = 19, 21, 23, 25, 27, 29  # low, high
HOLES = 31  # elements not finite on both sides that loops took for pairs of zeros
PADDED_A, PADDED_B = 32, 33  # zeros that loops over significands saw beyond a block
ULP_HUGE = 34  # distances beyond 2^31
SINCE = 35  # as FINITE
SPREAD = 36  # whether all lanes of the tables were used; from HOLES on: since they were emptied
COUNTS = 37

# Extremes since the start, float64.
WORST, WORST_A, WORST_B, ULP, ULP_A, ULP_B, MIN_A, MAX_A, MIN_B, MAX_B = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
)
EXTREMES = 10

# What is asked for: floats and integers.
ATOL, RTOL, HIGH_A, LOW_A, HIGH_B, LOW_B = 0, 1, 2, 3, 4, 5
TERMS = 6
KIND_A, KIND_B, PRECISION, MIN_EXPONENT, SATURATES_A, SATURATES_B = 0, 1, 2, 3, 4, 5
COARSER, EXACT = 6, 7  # kind of the coarser format; whether both sides are stored as integers
INT_HIGH_A, INT_LOW_A, INT_HIGH_B, INT_LOW_B = 8, 9, 10, 11  # bounds where float64 rounds them
ULP_FORM = 12  # in ulp_lanes.KNOWN
ORDERS = 13
# What is read next: addresses, and bytes of an element.
NEXT_A, NEXT_B, WIDTH_A, WIDTH_B = 0, 1, 2, 3
FLOAT, INT, BOOLEAN = 0, 1, 2  # of COARSER

# How the tables of a container format are coded.
HALF, FIRST, OCTAVES, TINY, WIDTH, CODE, TINY_ROW, NORMAL_ROW = 0, 1, 2, 3, 4, 5, 6, 7
COLUMN, NORMAL_A, NORMAL_B = 8, 9, 10
FORM = 11
JOINT_CODE = 4096  # as in metrics.histograms

# Stages, when they are measured.
T_LOAD, T_SIDES, T_VALUES, T_SUMS, T_ULPS, T_JOINT, T_MERGE, T_REST = 1, 2, 3, 4, 5, 6, 7, 8
