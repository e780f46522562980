-- Jobs with GPUs wait for Downclock's plan, and their submitters are told so: those whose comment
-- asks for it (--comment=downclock=plan, or another word of the guide), and all of some partitions.
-- Slurm does not show --deadline to its submit plugins: jobs without a deadline are let go as soon as
-- the planner sees them.
--
-- Copy it to job_submit.lua beside slurm.conf, with JobSubmitPlugins=lua in slurm.conf; or call
-- downclock_submit from the job_submit.lua that you have.
--
-- A job is not held: it is delayed. Where nobody plans it within PATIENCE_S, Slurm starts it as if
-- Downclock were not there. Opt out with --comment=downclock=off.

local PATIENCE_S = 300
local PARTITIONS = {} -- such as {gpu = true}: all their jobs with GPUs

local function asks_for_gpus(job)
   for _, key in ipairs({"tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"}) do
      local asked = job[key]
      if asked ~= nil and string.find(asked, "gpu", 1, true) then
         return true
      end
   end
   return false
end

local function is_ours(job, partitions) -- all partitions that it names, or the default one
   local named = job.partition
   for name, partition in pairs(partitions or {}) do
      if named == nil and partition.flag_default ~= 0 then
         named = name
      end
   end
   local ours = false
   for name in string.gmatch(named or "", "[^,]+") do
      if not PARTITIONS[name] then
         return false
      end
      ours = true
   end
   return ours
end

function downclock_submit(job, partitions)
   local comment = job.comment or ""
   local told = string.find(comment, "downclock=", 1, true) ~= nil
   if string.find(comment, "downclock=off", 1, true) then
      return
   end
   if not asks_for_gpus(job) or not (told or is_ours(job, partitions)) then
      return
   end
   if job.begin_time ~= nil and job.begin_time ~= 0 and job.begin_time ~= slurm.NO_VAL then
      return -- its owner chose a start
   end
   job.comment = string.sub("downclock=wait " .. comment, 1, 1000)
   job.begin_time = os.time() + PATIENCE_S
   slurm.log_user("downclock plans this job: it starts in time for its deadline, at a clock that"
      .. " saves energy (--comment=downclock=off opts out)")
end

function slurm_job_submit(job, partitions, uid)
   pcall(downclock_submit, job, partitions) -- whatever goes wrong here, the job is submitted
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
