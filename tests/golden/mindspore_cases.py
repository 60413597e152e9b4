"""The cases of the MindSpore golden set, by what is held of them."""

# Commands whose job others do here.
OTHER_COMMANDS = """ms8_op_generate_statistics_0 ms8_op_generate_statistics_1 ms8_op_generate_statistics_2
 ms8_op_generate_tensor_0 ms8_op_generate_tensor_1 ms8_op_generate_tensor_2 ms8_run_ut_statistics ms8_run_ut_tensor ms_acc_L1_nan
 ms_acc_statistics ms_acc_tensor ms_acc_weight""".split()
CONFIGS = "ms8_cfg_cmp ms_cfg_cmp ms_cfg_same".split()
# Files of the same names, and in them the same cells: numbers to one part in a million.
AGREE = """ms_compare_m1_L0_stat ms_compare_m1_L1_stat ms_compare_m1_debug_stat ms_compare_m1_md5 ms_compare_m1_ranks_xlsx
 ms_compare_m1_stat_bench ms_compare_m1_stat_nan ms_compare_m1_stat_op ms_compare_m1_stat_step1 ms_compare_m1_stat_weight
 ms_compare_m1_tensor_weight ms_compare_m2_L0_md5 ms_compare_m2_L0_stat ms_compare_m2_L0_tensor ms_compare_m2_L1_md5
 ms_compare_m2_L1_stat ms_compare_m2_L1_tensor ms_compare_m2_debug_md5 ms_compare_m2_debug_tensor ms_compare_m2_list
 ms_compare_m2_md5 ms_compare_m2_noextra ms_compare_m2_precision ms_compare_m2_proc
 ms_compare_m2_ranks ms_compare_m2_ranks_tensor ms_compare_m2_scope ms_compare_m2_stat_bench ms_compare_m2_stat_nan
 ms_compare_m2_stat_op ms_compare_m2_stat_step1 ms_compare_m2_stat_weight ms_compare_m2_stat_xlsx
 ms_compare_m2_task_mismatch ms_compare_m2_tensor_weight ms_compare_m2_tensor_xlsx ms_vis_m1_L0 ms_vis_m1_build
 ms_vis_m1_cmp_md5 ms_vis_m1_cmp_nan ms_vis_m1_cmp_op ms_vis_m1_cmp_weight ms_vis_m1_nan_oc ms_vis_m2_L0 ms_vis_m2_L1
 ms_vis_m2_build ms_vis_m2_cmp_md5 ms_vis_m2_cmp_nan ms_vis_m2_cmp_op ms_vis_m2_cmp_weight ms_vis_m2_nan_oc
 ms_vis_m2_op_fm ms_vis_m2_ranks ms_vis_m2_steps ms_vis_m2_struct ms_vis_m2_tensor_build""".split()
# As above, of tensors: rows that only our rules call a warning or an error have a reason in docs/compatibility.md.
STRICTER = """ms_compare_m1_tensor_nan ms_compare_m1_tensor_op ms_compare_m2_tensor_nan ms_compare_m2_tensor_op
 ms_compare_m2_tensor_fm""".split()
KERNELS = """ms_compare_kernel_ge_nan ms_compare_kernel_ge_weight ms_compare_kernel_graph_bench ms_compare_kernel_graph_nan
 ms_compare_kernel_graph_op ms_compare_kernel_graph_step1 ms_compare_kernel_graph_vs_jit ms_compare_kernel_graph_weight
 ms_compare_kernel_graph_xlsx ms_compare_kernel_jit_nan ms_compare_kernel_jit_weight ms_compare_kernel_m1
 ms_compare_kernel_m1_jitfwd ms_compare_kernel_out ms_compare_kernel_stat_nan ms_compare_kernel_stat_weight
 ms_compare_kernel_stat_xlsx ms_compare_kernel_statall_nan ms_compare_kernel_statall_weight ms8_compare_kernel
""".split()
CROSS_26 = (
    [
        f"ms_compare_{m}_cross_{kind}_{how}"
        for m in ("m1", "m2")
        for kind in ("stat", "tensor")
        for how in ("am", "amcm", "cm", "dm", "lm", "none")
    ]
    + """ms_compare_m1_cross_L0 ms_compare_m1_cross_L1 ms_compare_m1_cross_am_yaml ms_compare_m1_cross_cm_nofile ms_compare_m1_cross_cm_sub
 ms_compare_m1_cross_lm_nofile ms_compare_m1_cross_problem_lm ms_compare_m2_cross_L0 ms_compare_m2_cross_L1
 ms_compare_m2_cross_am_yaml ms_compare_m2_cross_cm_nofile ms_compare_m2_cross_lm_nofile ms_compare_m2_cross_problem_lm""".split()
)
CROSS_8 = [f"ms8_compare_{m}_cross_{how}" for m in ("m1", "m2") for how in ("am", "cm", "lm", "tensor")] + [
    "ms8_compare_m2_dm"
]
OLDER = """ms8_compare_dir ms8_compare_m1_md5 ms8_compare_m1_stack ms8_compare_m1_stat ms8_compare_m1_tensor ms8_compare_m2_md5
 ms8_compare_m2_stat ms8_compare_m2_tensor""".split()
GRAPHS = """ms_vis_m1_cmp_tensor ms_vis_m2_cmp_tensor ms_vis_m1_cross_lm ms_vis_m1_cross_lm_nofile ms_vis_m1_cross_problem
 ms_vis_m1_cross_tensor_lm ms_vis_m2_cross_lm""".split()
OLDER_GRAPHS = """ms8_graph_m1_build ms8_graph_m1_cmp ms8_graph_m1_cross ms8_graph_m2_build ms8_graph_m2_cmp ms8_graph_m2_cross""".split()
# A test below says what is right.
DIFFERENT = """ms8_code_mapping_m1 ms8_code_mapping_npy ms8_code_mapping_stat ms8_compare_m2_fm ms_compare_kernel_long
 ms_compare_kernel_stat_vs_npy
 ms8_compare_kernel_stat ms_compare_m1_cross_reverse ms_compare_m2_cross_reverse ms_compare_m1_ms_dm ms_compare_m1_ranks_da
 ms_compare_m2_ranks_da ms_compare_m2_da_file ms_compare_m2_ms_am ms_compare_m2_ms_lm ms_compare_m2_list_vs_net ms_compare_m2_struct ms_vis_m2_list
 ms_db_m1 ms_db_m2 ms_parse_adump ms_parse_broken ms_vis_m1_cross_none ms_vis_m2_cross_none""".split()
GROUPS = (OTHER_COMMANDS, CONFIGS, AGREE, STRICTER, KERNELS, CROSS_26, CROSS_8, OLDER, GRAPHS, OLDER_GRAPHS, DIFFERENT)
